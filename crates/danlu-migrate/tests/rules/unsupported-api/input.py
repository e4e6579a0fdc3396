import torch
from torch import stft


class Net(torch.nn.Module):
    pass


torch.cuda.get_device_capability()
torch.igamma(torch.ones(1), torch.ones(1))
stft(torch.ones(4), 2)
torch.no_such_thing()


class Environment:
    def __init__(self):
        properties = torch.cuda.get_device_properties(0)
        self.name = properties.name
        self.major = properties.major
        self.minor = torch.cuda.get_device_properties(1).minor
        self.other = self.properties.major
