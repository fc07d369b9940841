"""The command notify, which sends what the results say to a person: cameras that are offline, alarms and crowds."""
