import os

os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
os.environ.setdefault('CUDA_LAUNCH_BLOCKING', "1")
visible = os.getenv("CUDA_VISIBLE_DEVICES", "").split(",")
env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
os.environ["NCCL_SOCKET_IFNAME"] = "eth0"
os.environ["NCCL_DEBUG"] = "INFO"
os.environ["TORCH_CUDA_ARCH_LIST"] = "8.0"
print("set CUDA_VISIBLE_DEVICES first")
os.system("CUDA_VISIBLE_DEVICES=0 python train.py --name CUDA_VISIBLE_DEVICES")
os.environ["MV2_USE_CUDA"] = "1"
