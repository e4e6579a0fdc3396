import torch

optimizer = torch.optim.AdamW([])
loader = torch.utils.data.DataLoader([])
torch.matmul(torch.ones(1), torch.ones(1))
