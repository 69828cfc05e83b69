package plan

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // a machine without zoneinfo tests the same
)

func TestParseUntil(t *testing.T) {
	const berlin, york, howe, utc = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"
	for _, c := range []struct{ text, zone, now, want, said string }{
		{"07:00", berlin, "2026-11-30T20:48:00+01:00", "2026-12-01T07:00:00+01:00", ""},
		{" 7:00 ", berlin, "2026-11-30T20:48:00+01:00", "2026-12-01T07:00:00+01:00", ""},
		{"07:00", berlin, "2026-12-01T06:59:59+01:00", "2026-12-01T07:00:00+01:00", ""},
		{"07:00", berlin, "2026-12-01T07:00:00+01:00", "2026-12-02T07:00:00+01:00", ""},
		{"07:00:30", berlin, "2026-12-01T07:00:00+01:00", "2026-12-01T07:00:30+01:00", ""},
		{"00:00", berlin, "2026-12-31T23:00:00+01:00", "2027-01-01T00:00:00+01:00", ""},
		{"24:00", berlin, "2026-12-31T23:00:00+01:00", "2027-01-01T00:00:00+01:00", ""},
		{"07:00", york, "2026-11-30T20:48:00-05:00", "2026-12-01T07:00:00-05:00", ""},
		{"07:00", utc, "2026-11-30T20:48:00Z", "2026-12-01T07:00:00Z", ""},
		// The night has 9 hours in spring and 11 in autumn.
		{"07:00", berlin, "2026-03-28T21:00:00+01:00", "2026-03-29T07:00:00+02:00", ""},
		{"07:00", berlin, "2026-10-24T21:00:00+02:00", "2026-10-25T07:00:00+01:00", ""},
		{"8h", berlin, "2026-10-24T23:00:00+02:00", "2026-10-25T06:00:00+01:00", ""},
		{"90m", york, "2026-03-08T01:00:00-05:00", "2026-03-08T03:30:00-04:00", ""},
		// Times that do not exist.
		{"02:30", berlin, "2026-03-28T21:00:00+01:00", "2026-03-29T03:30:00+02:00", "02:30 does not exist that night: taken as 03:30 CEST"},
		{"02:30", berlin, "2026-03-29T01:59:00+01:00", "2026-03-29T03:30:00+02:00", "02:30 does not exist that night: taken as 03:30 CEST"},
		{"02:30", berlin, "2026-03-29T03:31:00+02:00", "2026-03-30T02:30:00+02:00", ""},
		{"02:00", berlin, "2026-03-28T21:00:00+01:00", "2026-03-29T03:00:00+02:00", "02:00 does not exist that night: taken as 03:00 CEST"},
		{"03:00", berlin, "2026-03-28T21:00:00+01:00", "2026-03-29T03:00:00+02:00", ""},
		{"2026-03-08 02:30", york, "2026-03-01T10:00:00-05:00", "2026-03-08T03:30:00-04:00", "02:30 does not exist that night: taken as 03:30 EDT"},
		{"02:15", howe, "2026-10-03T21:00:00+10:30", "2026-10-04T02:45:00+11:00", "02:15 does not exist that night: taken as 02:45 +11"},
		{"02:30", howe, "2026-10-03T21:00:00+10:30", "2026-10-04T02:30:00+11:00", ""},
		// Times that come twice.
		{"02:30", berlin, "2026-10-24T21:00:00+02:00", "2026-10-25T02:30:00+02:00", "02:30 comes twice that night: taken as the first, 02:30 CEST"},
		{"02:30", berlin, "2026-10-25T02:40:00+02:00", "2026-10-25T02:30:00+01:00", "02:30 comes twice that night, and the first is past: taken as the second, 02:30 CET"},
		{"02:30", berlin, "2026-10-25T02:31:00+01:00", "2026-10-26T02:30:00+01:00", ""},
		{"01:30", york, "2026-10-31T21:00:00-04:00", "2026-11-01T01:30:00-04:00", "01:30 comes twice that night: taken as the first, 01:30 EDT"},
		{"01:45", howe, "2026-04-04T21:00:00+11:00", "2026-04-05T01:45:00+11:00", "01:45 comes twice that night: taken as the first, 01:45 +11"},
		{"01:15", howe, "2026-04-04T21:00:00+11:00", "2026-04-05T01:15:00+11:00", ""},
		{"2026-10-25 02:30", berlin, "2026-10-25T02:40:00+02:00", "2026-10-25T02:30:00+01:00", "02:30 comes twice that night, and the first is past: taken as the second, 02:30 CET"},
		// A day that was skipped whole.
		{"12:00", "Pacific/Apia", "2011-12-29T20:00:00-10:00", "2011-12-31T12:00:00+14:00", "12:00 does not exist that night: taken as 12:00 +14"},
		// Dates.
		{"2026-12-01 07:00", berlin, "2026-11-30T20:48:00+01:00", "2026-12-01T07:00:00+01:00", ""},
		{"2026-12-01T07:00", berlin, "2026-11-30T20:48:00+01:00", "2026-12-01T07:00:00+01:00", ""},
		{"2026-12-01T07:00:00-05:00", berlin, "2026-11-30T20:48:00+01:00", "2026-12-01T13:00:00+01:00", ""},
		{"2026-12-01T06:00Z", berlin, "2026-11-30T20:48:00+01:00", "2026-12-01T06:00:00Z", ""},
		{"2028-02-29 07:00", utc, "2026-11-30T20:48:00Z", "2028-02-29T07:00:00Z", ""},
	} {
		loc, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		d, err := ParseUntil(c.text, now, loc)
		if err != nil {
			t.Errorf("%q at %s in %s: %v", c.text, c.now, c.zone, err)
			continue
		}
		if got := d.At.Format(time.RFC3339); got != c.want || d.Said != c.said {
			t.Errorf("%q at %s in %s: %s (%q), want %s (%q)", c.text, c.now, c.zone, got, d.Said, c.want, c.said)
		}
	}
}

func TestParseUntilRefuses(t *testing.T) {
	now := time.Date(2026, 11, 30, 20, 48, 0, 0, time.UTC)
	for text, says := range map[string]string{
		"":                     "is no time: write a time of day",
		"7":                    "is no time",
		"0":                    "is no time",
		"0s":                   "is not in the future",
		"7am":                  "is no time",
		"25:00":                "is no time",
		"07:60":                "is no time",
		"-8h":                  "is not in the future",
		"9e99h":                "is no time",
		"2000000h":             "is too long",
		"2026-02-29 07:00":     "is no time",
		"2026-12-01":           `lacks the time of day: write "2026-12-01 07:00"`,
		"2026-11-30 20:48":     "is past: it was 0s ago",
		"2026-11-30 07:00":     "is past: it was 13h48m ago, it is 2026-11-30 20:48 UTC now",
		"2025-12-01T07:00:00Z": "is past",
		"tomorrow":             "is no time",
	} {
		if d, err := ParseUntil(text, now, time.UTC); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v, want %q", text, d, err, says)
		}
	}
}

func TestClock(t *testing.T) {
	now := time.Date(2026, 11, 30, 20, 48, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		10 * time.Hour: "06:48 UTC", 24 * time.Hour: "Tue 2026-12-01 20:48 UTC", -time.Hour: "Mon 2026-11-30 19:48 UTC",
	} {
		if got := Clock(now.Add(d), now); got != want {
			t.Errorf("in %s: %s, want %s", d, got, want)
		}
	}
}

func FuzzParseUntil(f *testing.F) {
	for _, s := range []string{"07:00", "8h", "2026-12-01 07:00", "2026-12-01T07:00:00+01:00", "24:00", "9999-12-31 23:59"} {
		f.Add(s, int64(1_800_000_000))
	}
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		now := time.Unix(unix%(1<<33), 0)
		if d, err := ParseUntil(text, now, loc); err == nil && !d.At.After(now) {
			t.Errorf("%q at %s: %s", text, now, d.At)
		}
	})
}
