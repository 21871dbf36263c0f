#!/bin/sh
# Creates the secrets that docker-compose.yml reads, and keeps those that exist.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
make_secret() {
    [ -s "secrets/$1" ] || od -An -N 24 -tx1 /dev/urandom | tr -d ' \n' > "secrets/$1"
}
make_secret postgres_password
make_secret secret_key
make_secret admin_password
[ -s secrets/database_url ] ||
    printf 'postgres://gatehouse:%s@postgres:5432/gatehouse' "$(cat secrets/postgres_password)" > secrets/database_url
# The public key seals clusters' credentials; only the worker has the private key.
[ -s secrets/seal_private_keys ] ||
    openssl genpkey -algorithm X25519 -out secrets/seal_private_keys
[ -s secrets/seal_public_keys ] ||
    openssl pkey -in secrets/seal_private_keys -pubout -out secrets/seal_public_keys
# Compose mounts these files with their own mode and owner, so the services must run as their owner.
# Root therefore gives them to another user: no service runs as root.
uid=$(id -u)
if [ "$uid" = 0 ]; then
    uid=10001
    chown -R "$uid:$uid" secrets
fi
chmod 700 secrets
chmod 600 secrets/*
# Compose reads .env beside docker-compose.yml.
env=../.env
touch "$env"
sed -i.before '/^GATEHOUSE_UID=/d' "$env" && rm -f "$env.before"
echo "GATEHOUSE_UID=$uid" >> "$env"
echo "The first admin is 'admin'; the password is in deploy/secrets/admin_password."
