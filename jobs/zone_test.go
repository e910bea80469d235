package jobs

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A period holds the instant it was asked for and has one offset throughout: the search
// for the next tick rests on both, and on neither bound standing still.
func TestPeriodsOfAZone(t *testing.T) {
	names := []string{"UTC", "Etc/GMT+5", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/Havana",
		"America/Sao_Paulo", "America/Asuncion", "America/Juneau", "Africa/Casablanca", "Africa/Cairo", "Asia/Gaza",
		"Asia/Beirut", "Asia/Tehran", "Asia/Manila", "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Apia",
		"Pacific/Kwajalein", "Pacific/Chatham", "Antarctica/Troll"}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range names {
		loc, err := loadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		s := &Schedule{zone: loc}
		offset := func(at int64) int64 {
			_, o := time.Unix(at, 0).In(loc).Zone()
			return int64(o)
		}
		for range 5000 {
			at := minSecond + rng.Int64N(maxSecond-minSecond)
			if rng.IntN(2) == 0 {
				at = rng.Int64N(6e9) - 2e9
			}
			p := s.periodAt(at)
			if p.start > at || p.end <= at {
				t.Fatalf("%s: %d is outside its period %+v", name, at, p)
			}
			first, last := max(p.start, at-1e9), min(p.end, at+1e9)-1
			for _, probe := range []int64{at, first, last, first + rng.Int64N(last-first+1)} {
				if offset(probe) != p.offset {
					t.Fatalf("%s: offset %d at %d, in the period %+v of %d", name, offset(probe), probe, p, at)
				}
			}
		}
	}
}

func TestZonesAreLoadedOnce(t *testing.T) {
	a, err := loadZone("Asia/Kathmandu")
	if err != nil {
		t.Fatal(err)
	}
	b, err := loadZone("Asia/Kathmandu")
	if err != nil || a != b {
		t.Errorf("%p and %p, %v", a, b, err)
	}
	if _, err := loadZone("Asia/Nowhere"); err == nil {
		t.Error("a zone that does not exist")
	}
	if _, kept := zones.Load("Asia/Nowhere"); kept {
		t.Error("a name that does not exist is kept")
	}
}
