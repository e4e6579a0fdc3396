import torch
import torch_npu  # noqa: F401

torch.set_default_tensor_type("torch.npu.FloatTensor")
torch.set_default_tensor_type(torch.npu.FloatTensor)
x = torch.ones(1).type('torch.npu.HalfTensor')
y = torch.npu.DoubleTensor([1.0])
print("torch.cuda.FloatTensor is a type")
