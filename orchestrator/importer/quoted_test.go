package importer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What was answered to in a mail reads like what was sent.
func TestQuotedMail(t *testing.T) {
	for _, c := range []struct{ format, text string }{
		{"iperf", "[ ID] Interval       Transfer     Bandwidth\n[  3]  0.0-60.0 sec    165 MBytes  23.1 Mbits/sec\n"},
		{"kernbench", "2.6.0\nAverage Half load -j 2 Run (std deviation):\nElapsed Time 120.5 (0.5)\nUser Time 220.1 (0.6)\nSystem Time 18.2 (0.2)\nPercent CPU 197.2 (0.4)\nContext Switches 12000 (100.5)\nSleeps 20100 (150.2)\n"},
		{"time", "\nreal\t2m3.407s\nuser\t1m58.020s\nsys\t0m4.913s\n"},
		{"vmstat", vmHead + " 0  0      0   9120    600   4100    0    0     5     1   40   60  1  1 98  0\n 1  0      0   9000    600   4100    0    0     0     0  900 1500 30 10 60  0\n"},
		{"table", "kernel user_s\ncfs 1.5\nbfs 1.25\n"},
		{"table", "kernel,user_s\ncfs,1.5\nbfs,1.25\n"},
	} {
		name := "f|"
		if c.format != "table" && c.format != "kernbench" {
			name = "K=f|"
		}
		want := said(must(t, Options{Format: c.format}, name+c.text))
		for _, mark := range []string{"> ", ">", ">> ", "> > "} {
			got := said(must(t, Options{Format: c.format}, name+mark+strings.ReplaceAll(strings.TrimSuffix(c.text, "\n"), "\n", "\n"+mark)+"\n"))
			if !slices.Equal(got, want) {
				t.Errorf("%s behind %q: %q, want %q", c.format, mark, got, want)
			}
		}
	}
	// A ">" that not every line of a table has is no mark of mail.
	m := must(t, Options{Format: "table"}, "f|kernel,user_s\n>cfs,1.5\nbfs,2\n")
	if got := fmt.Sprint(said(m)); got != "[>cfs default: user=1.5 bfs default: user=2]" {
		t.Error(got)
	}
}

func TestTextOfOtherSystems(t *testing.T) {
	const table = "kernel,user_s\r\ncfs,1.5\r\nbfs,1.25\r\n"
	want := said(must(t, Options{Format: "table"}, "f|"+table))
	wide := func(mark string, high int) string {
		out := mark
		for _, c := range []byte(table) {
			pair := []byte{c, 0}
			pair[high] = c
			pair[1-high] = 0
			out += string(pair)
		}
		return out
	}
	for name, text := range map[string]string{
		"UTF-8 with a mark": "\xef\xbb\xbf" + table, "UTF-16, little": wide("\xff\xfe", 0), "UTF-16, big": wide("\xfe\xff", 1),
		"UTF-16 without a mark": wide("", 0), "… big": wide("", 1),
	} {
		if got := said(must(t, Options{Format: "table"}, "f|"+text)); !slices.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
