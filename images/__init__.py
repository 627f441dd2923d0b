"""The example images and the script that builds them."""
