"""The shipped lecture cases, one TOML file each."""
