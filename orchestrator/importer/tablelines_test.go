package importer

import (
	"slices"
	"strings"
	"testing"
)

// Tables as they stand in mails, wikis, terminals and spreadsheets.
func TestDrawnTables(t *testing.T) {
	want := []string{"cfs default: user=1.5 max lat=30", "bfs default: user=1.25 max lat=4"}
	for name, text := range map[string]string{
		"Markdown":              "| Kernel | user (s) | max lat (ms) |\n|:--|--:|:-:|\n| cfs | 1.5 | 30 |\n| **bfs** | `1.25` | 4 |\n",
		"… in prose, with bars": "Results, at last:\n\n| Kernel | user (s) | max lat (ms) |\n|---|---|---|\n| cfs | 1.5 | 30 |\n| bfs | 1.25 | 4 |\n\nThat is all; bye.\n",
		"… without end bars":    "Kernel | user (s) | max lat (ms)\n--- | ---: | ---\ncfs | 1.5 | 30\nbfs | 1.25 | 4\n",
		"database":              "+--------+------+----+\n| kernel | user_s | max lat_ms |\n+--------+------+----+\n| cfs | 1.5 | 30 |\n| bfs | 1.25 | 4 |\n+--------+------+----+\n",
		"box":                   "┌────┬───┬───┐\n│ kernel │ user_s │ max lat_ms │\n├────┼───┼───┤\n│ cfs │ 1.5 │ 30 │\n│ bfs │ 1.25 │ 4 │\n└────┴───┴───┘\n",
		"reST":                  "======  ======  ==========\nkernel  user_s  max lat_ms\n======  ======  ==========\ncfs     1.5     30\nbfs     1.25    4\n======  ======  ==========\n",
		"names with blanks":     "kernel   user (s)   max lat (ms)\n-------- ---------- ------------\ncfs      1.5        30\nbfs      1.25       4\n",
		"tabs":                  "kernel\tuser_s\tmax lat_ms\ncfs\t1.5\t30\nbfs\t1.25\t4\n",
		"spreadsheet":           "sep=;\nkernel;user_s;\"max lat (ms)\";;\n\ncfs;1,5;30;;\nbfs;1,25;4;;\n;;;;\n",
		"±":                     "kernel user_s max_lat_ms\ncfs 1.5 ± 0.2 30 +/- 4\nbfs 1.25±0.1 4\n",
	} {
		got := said(must(t, Options{Format: "table"}, "f|"+text))
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], "max_lat", "max lat")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestTablesThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"kernel;score\ncfs;1,5\nbfs;12.345\n":                  `f:3: "12.345" is ambiguous: its point may be a decimal or a thousands separator, for "1,5" on line 2 has a decimal comma`,
		"sep=;\nkernel;score\ncfs;1,5\nbfs;x\n":                `f:4: column score: "x" is no number`,
		"| kernel | x |\n|---|---|\n| cfs | 1 | 2 |\n":         "f:3: 3 fields where the first line names 2 columns",
		"kernel max lat\ncfs 1\nbfs 2 3\n":                     "f:2: 2 fields where the first line names 3 columns",
		"Running with 10 groups (== 400 tasks)\nTime: 0.123\n": `has the number "10"`,
		"# policy\nT: 0 ( 1235) P:80 I:1000 C: 10 Min: 1\n":    `has the number "0"`,
	} {
		_, err := read(t, Options{Format: "table"}, "f|"+text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
