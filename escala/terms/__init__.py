"""The words of the house as plain data. Nothing here computes, touches a device or imports torch."""
