"""Sources that are named: pages, files, folders, sites, and the places in them."""
