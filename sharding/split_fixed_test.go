package sharding

import "math"

// fixedShards are keys with the shard that each is in, of as many as fixedCounts says. They were worked out apart
// from this package, with the hash and the jump as published.
var (
	fixedCounts = []int{1, 2, 3, 16, 100, 1024, math.MaxInt32}
	fixedShards = map[string][]int{
		"":                  {0, 1, 2, 7, 40, 332, 730414282},
		"a":                 {0, 1, 1, 8, 17, 894, 582641062},
		"1":                 {0, 1, 2, 2, 48, 957, 1853044311},
		"2":                 {0, 0, 2, 3, 91, 682, 247554806},
		"customer-1":        {0, 0, 0, 0, 39, 939, 471546013},
		"customer-2":        {0, 0, 0, 8, 28, 809, 527994242},
		"customer-12345678": {0, 1, 1, 14, 34, 583, 706776221},
		"ann@example.org":   {0, 0, 0, 3, 3, 173, 880888847},
		"größe":             {0, 0, 0, 14, 53, 518, 1673189749},
		"a-rather-long-key-of-a-customer-to-fill-more-than-one-stripe": {0, 0, 0, 0, 85, 224, 421289110},
	}
)
