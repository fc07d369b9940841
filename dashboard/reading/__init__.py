"""How pages get their rows."""
