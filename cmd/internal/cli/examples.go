package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are for the help of each command, by its path behind the program's name.
var examples = map[string]string{
	"dev": `
escapement dev
escapement dev --nodes 5 --config config.yaml`,
	"run": `
escapement run --config /etc/escapement/config.yaml
ESCAPEMENT_REDIS_URL=redis://redis:6379/0 ESCAPEMENT_NODE_NAME=a1 escapement run --wait-for-redis`,
	"config validate": `
escapement config validate config.yaml`,
	"config print": `
escapement config print
ESCAPEMENT_NODE_WEIGHT=2 escapement config print --config config.yaml -o json`,
	"config schema": `
escapement config schema`,
	"config init": `
escapement config init config.yaml
escapement config init - | less`,
	"notify test": `
escapement notify test
escapement notify test team --config /etc/escapement/config.yaml`,
	"cron explain": `
escapement cron explain "*/5 9-17 * * MON-FRI"
escapement cron explain "30 2 * * *" --tz Europe/Berlin --from 2026-03-28 -n 3
escapement cron explain "H 3 * * *" --job settle-orders`,
	"jobs list": `
escapement jobs list
escapement jobs list -o json | jq -r '.[] | select(.last_outcome == "failed") | .name'`,
	"jobs get": `
escapement jobs get settle-orders`,
	"jobs run": `
escapement jobs run report
escapement jobs run report --at "2026-12-01 08:00" --tz Europe/Berlin --unique december
escapement jobs run report --payload '{"day": "2026-11-24"}' --wait-for 10m`,
	"jobs pause": `
escapement jobs pause settle-orders --reason "bank is down" --until 2h
escapement jobs pause settle-orders --reason "bank is down" --until "2026-12-01 06:00" --tz Europe/Berlin`,
	"jobs resume": `
escapement jobs resume settle-orders`,
	"jobs rewind": `
escapement jobs rewind settle-orders --to 2h
escapement jobs rewind settle-orders --to "2026-11-24 22:00" --tz Europe/Berlin`,
	"jobs backfill": `
escapement jobs backfill settle-orders --from 2026-11-01 --to 2026-11-23 --tz Europe/Berlin --dry-run
escapement jobs backfill settle-orders --from 2026-11-01 --to 2026-11-23 --parallel 4 --reason "prices were wrong"`,
	"jobs backfills": `
escapement jobs backfills
escapement jobs backfills settle-orders -o wide`,
	"jobs backfill-cancel": `
escapement jobs backfill-cancel settle-orders --reason "wrong range"`,
	"jobs graph": `
escapement jobs graph
escapement jobs graph -o json`,
	"jobs put": `
escapement jobs put report/tenant-7 --handler report --schedule "0 6 * * *" --payload '{"tenant": 7}'
escapement jobs put report/tenant-7 --handler report --schedule "0 7 * * *" --time-zone Europe/Berlin --dry-run
escapement jobs put mail/tenant-7 --handler mail --after report/tenant-7 --when any --retry-max 3`,
	"jobs apply": `
escapement jobs apply -f tenants.yaml --dry-run
escapement jobs apply -f tenants.yaml --prune tenants
escapement jobs apply -f tenants.yaml --reason "tenants of December"`,
	"jobs export": `
escapement jobs export > tenants.yaml
escapement jobs export report/tenant-7 -o json`,
	"jobs delete": `
escapement jobs delete settle-orders
escapement jobs delete report/tenant-7 --reason "the tenant left"`,
	"runs list": `
escapement runs list --job settle-orders --since 2d
escapement runs list --outcome failed --since 2026-11-24 -o wide`,
	"runs get": `
escapement runs get 01a2164e-3bd0-7e12-9aa0-e6e8b8250d6d`,
	"runs logs": `
escapement runs logs 01a2164e-3bd0-7e12-9aa0-e6e8b8250d6d
escapement runs logs 01a2164e-3bd0-7e12-9aa0-e6e8b8250d6d --follow`,
	"runs cancel": `
escapement runs cancel 01a2164e-3bd0-7e12-9aa0-e6e8b8250d6d --reason "wrong day"`,
	"runs rerun": `
escapement runs rerun 01a2164e-3bd0-7e12-9aa0-e6e8b8250d6d --wait-for 10m`,
	"nodes list": `
escapement nodes list
escapement nodes list -o wide`,
	"nodes drain": `
escapement nodes drain a1 --reason "new disk" --wait`,
	"nodes resume": `
escapement nodes resume a1`,
	"locks list": `
escapement locks list
escapement locks list --limit 0 -o json`,
	"locks get": `
escapement locks get order:42`,
	"locks release": `
escapement locks release order:42 --token 1795669507299461
escapement locks release order:42 --token 1795669507299461 --force`,
	"lock": `
escapement lock nightly-backup -- pg_dump -f /backup/shop.sql shop
escapement lock deploy --wait 10m --ttl 30s -- ./deploy.sh --region eu
escapement lock report-db --permits 3 --wait 1h -- ./report.sh
escapement lock ledger --driver redlock --servers redis://a:6379,redis://b:6379,redis://c:6379 -- ./close-books.sh`,
	"locks bootstrap": `
escapement locks bootstrap --driver redlock --servers redis://a:6379,redis://b:6379,redis://c:6379`,
	"generations list": `
escapement generations list`,
	"generations promote": `
escapement generations promote green --job "report-*"
escapement generations promote green --cancel-running`,
	"move plan": `
escapement move plan --from redis://old:6379/0 --to redis://new:6379/0`,
	"move seal": `
escapement move seal --from redis://old:6379/0 --to redis://new:6379/0 --drain 2m`,
	"move copy": `
escapement move copy --from redis://old:6379/0 --to redis://new:6379/0`,
	"move open": `
escapement move open --from redis://old:6379/0 --to redis://new:6379/0`,
	"move abort": `
escapement move abort --from redis://old:6379/0 --to redis://new:6379/0`,
	"move status": `
escapement move status --from redis://old:6379/0 --to redis://new:6379/0`,
	"backup": `
escapement backup jobs.jsonl
escapement backup - | gzip > jobs-$(date +%F).jsonl.gz`,
	"restore": `
escapement restore jobs.jsonl --dry-run
escapement restore jobs.jsonl --job 'billing-*'
escapement restore -`,
	"audit list": `
escapement audit list --since 2d
escapement audit list --who ann -o json`,
	"completion": `
escapement completion bash
escapement completion zsh`,
	"doctor": `
escapement doctor
escapement doctor --api http://10.0.0.7:8080
escapement doctor -o json | jq -r '.[] | select(.severity == "error") | .text'`,
	"ledger verify": `
escapement ledger verify
escapement ledger verify --job settle-orders --since 7d`,
	"health": `
escapement health
escapement health --ready --api http://10.0.0.7:8080`,
	"version": `
escapement version -o json`,
}

// addExamples gives each command its examples.
func addExamples(cmd *cobra.Command) {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	cmd.Example = strings.ReplaceAll(examples[path], "\n", "\n  ")
	cmd.Example = strings.TrimPrefix(cmd.Example, "\n")
	for _, c := range cmd.Commands() {
		addExamples(c)
	}
}
