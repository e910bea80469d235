package ledger

import "testing"

// FuzzRecords: reading any text as a record is an error at worst.
func FuzzRecords(f *testing.F) {
	for _, s := range []string{"", "1", "1|R|1|2|3|4|0|1|1|1|r|5|n|a|schedule||succeeded||6||e|f", "1|S|1|2|3|4|5|6|missed|late|",
		"1|1|d|v|1|r|o|1|1|1,2|3,|4,2|missed=3,lost=x", "1|2|0|j|1|0|1|1|9|n|a|5|1|2|schedule||7|s|1|p|q", "1|j|1|0|1|1|1|2|manual|t|3|1|p", "2|x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, parse := range map[string]func() error{
			"entry":   func() error { _, err := parseEntry("j", s); return err },
			"lease":   func() error { _, err := parseRun("r", s); return err },
			"pending": func() error { _, err := parsePending("r", s); return err },
			"row":     func() error { _, err := parseRow("j", s); return err },
		} {
			if err := parse(); err != nil && failed(err) != "foreign" {
				t.Errorf("%s %q: %v", name, s, err)
			}
		}
	})
}
