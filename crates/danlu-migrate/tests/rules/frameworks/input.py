import deepspeed
import pytorch_lightning as pl
from megatron.core import mpu
from megatron.training import pretrain
from transformers import AutoModel

deepspeed.init_distributed(dist_backend="nccl")
trainer = pl.Trainer(accelerator="gpu", devices=8)
model = AutoModel.from_pretrained("x", attn_implementation="flash_attention_2", device_map="cuda")
