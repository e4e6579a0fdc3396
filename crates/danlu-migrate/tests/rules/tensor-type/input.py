import torch

torch.set_default_tensor_type("torch.cuda.FloatTensor")
torch.set_default_tensor_type(torch.cuda.FloatTensor)
x = torch.ones(1).type('torch.cuda.HalfTensor')
y = torch.cuda.DoubleTensor([1.0])
print("torch.cuda.FloatTensor is a type")
