import torch


def main():
    return torch.ones(1).cuda()


if __name__ == "__main__":
    main()
