package cli

import (
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/ops"
)

func (a *app) auditCommand() *cobra.Command {
	var f ops.ActionFilter
	var since *timeFlag
	list := a.command("list [--since T] [--who NAME] [--after PLACE] [--limit N]", "list what operators did, the newest first", wants(),
		func(cmd *cobra.Command, args []string) error {
			from, err := since.when()
			if err != nil {
				return err
			}
			f.Limit = a.limit(cmd, f.Limit)
			return a.inspect(func(t tool) error { return a.auditList(t, f, from) })(cmd, args)
		})
	list.Long = `Lists what people changed with this program, over the API or in the console, and what they were
refused: who, what, why and when. The namespace keeps the last 2,000 actions. What programs
do with the Go client, such as jobs that a web handler triggers, is not among them.

` + pageForms + `

` + timeForms
	since = addTimeFlag(list, "since", ago, "only what was done since `T`: 2d is two days ago")
	list.Flags().StringVar(&f.Who, "who", "", "only what `NAME` did")
	list.Flags().StringVar(&f.After, "after", "", "the page behind this `PLACE`, which the page before names")
	limitFlag(list, &f.Limit)
	return a.group("audit COMMAND", "what operators did", list)
}

func (a *app) auditList(t tool, f ops.ActionFilter, since when) (err error) {
	if f.Since, err = t.instant(since); err != nil {
		return err
	}
	found, unread := t.in.Audit(t.ctx, f)
	if unread != nil && found.Items == nil {
		return unread
	}
	if err := a.sayLacks(unread); err != nil {
		return err
	}
	if found.UnknownFormat > 0 {
		a.say("%s of the audit cannot be read by this version", print.Many(int64(found.UnknownFormat), "row"))
	}
	if found.Next != "" {
		a.sayMore(len(found.Items), found.Next)
	}
	if a.json() {
		return print.JSON(a.stdout, print.List(found.Items))
	}
	out := a.newTable(print.Instant("AT"), print.Whole("WHO"), print.Whole("ACTION"), print.Whole("TARGET"), print.Col("REASON"), print.Col("DETAIL"), print.Col("REFUSED"), print.Wide("VIA"))
	for _, v := range found.Items {
		out.Row(print.Stamp(v.At), v.Who, v.Action, v.Target, v.Reason, v.Detail, v.Error, v.Via)
	}
	return out.Flush()
}
