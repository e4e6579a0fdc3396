import torch
print "training on", torch.cuda.current_device()
