# clients: tellerctl
