package sharding

// fixedOwners are keys with the order of the nodes a, b (weight 2) and c (weight 3).
var fixedOwners = map[string]string{
	"":              "[c b a]",
	"job":           "[b c a]",
	"report":        "[c a b]",
	"settle-orders": "[b c a]",
	"mail/digest":   "[c b a]",
	"a-rather-long-name-of-a-job-to-fill-more-than-one-stripe": "[c b a]",
	"größe": "[c b a]",
	"job#0": "[b a c]",
	"job#1": "[c a b]",
	"job#2": "[a b c]",
}
