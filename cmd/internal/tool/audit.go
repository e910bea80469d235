package tool

import (
	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/ops"
)

// Audit makes the commands audit.
func Audit(a *command.App) *cobra.Command {
	var f ops.ActionFilter
	var since *command.TimeFlag
	list := a.Command("list [--since T] [--who NAME] [--after PLACE] [--limit N]", "list what operators did, the newest first", command.Wants(),
		func(cmd *cobra.Command, args []string) error {
			f.Limit = a.Limit(cmd, f.Limit)
			return a.Connect(func(t command.Tool) error { return auditList(t, f, since) })(cmd, args)
		})
	list.Long = `Lists what people changed with this program, over the API or in the console, and what they were
refused: who, what, why and when. The namespace keeps the last 2,000 actions. What programs
do with the Go client, such as jobs that a web handler triggers, is not among them.

` + command.PageForms + `

` + command.TimeForms
	list.Example = `escapement audit list --since 2d
escapement audit list --who ann -o json`
	since = command.AddTimeFlag(list, "since", command.Ago, "only what was done since `T`: 2d is two days ago")
	list.Flags().StringVar(&f.Who, "who", "", "only what `NAME` did")
	list.Flags().StringVar(&f.After, "after", "", "the page behind this `PLACE`, which the page before names")
	command.LimitFlag(list, &f.Limit)
	return a.Group("audit COMMAND", "what operators did", list)
}

func auditList(t command.Tool, f ops.ActionFilter, since *command.TimeFlag) (err error) {
	if f.Since, err = t.Instant(since); err != nil {
		return err
	}
	found, unread := t.Client.Audit(t.Ctx, f)
	if unread != nil && found.Items == nil {
		return unread
	}
	if err := t.ReportUnreadable(unread); err != nil {
		return err
	}
	if found.UnknownFormat > 0 {
		t.Report("%s of the audit cannot be read by this version", print.Many(int64(found.UnknownFormat), "row"))
	}
	if found.Next != "" {
		t.ReportNext(len(found.Items), found.Next)
	}
	if t.JSON() {
		return print.JSON(t.Stdout, print.List(found.Items))
	}
	out := t.NewTable(print.Instant("AT"), print.Whole("WHO"), print.Whole("ACTION"), print.Whole("TARGET"), print.Col("REASON"), print.Col("DETAIL"), print.Col("REFUSED"), print.Wide("VIA"))
	for _, v := range found.Items {
		out.Row(print.Stamp(v.At), v.Who, v.Action, v.Target, v.Reason, v.Detail, v.Error, v.Via)
	}
	return out.Flush()
}
