"""Adds region and yearly value to every lead and puts them into leads.db."""

import csv
import sqlite3
from pathlib import Path

REGION = {"FI": "Europe", "DE": "Europe", "FR": "Europe", "CN": "Asia", "JP": "Asia"}
YEARLY = 12

with Path("leads.csv").open(newline="") as file, sqlite3.connect("leads.db") as leads:
    leads.execute("CREATE TABLE lead (company, region, value)")
    for row in csv.DictReader(file):
        lead = (row["company"], REGION[row["country"]], int(row["seats"]) * YEARLY)
        leads.execute("INSERT INTO lead VALUES (?, ?, ?)", lead)
