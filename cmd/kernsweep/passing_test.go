package main

import (
	"bytes"
	"testing"

	"kernsweep/orchestrator/live"
)

// What a command writes, in pieces of any size, is shown whole and drives nothing.
func TestPassing(t *testing.T) {
	text := "prompt> ü 日本\ttab\r\nnext\r\n" + hostile + "\r" + "over\n\xe6\x97"
	want := live.SafeText("prompt> ü 日本\ttab\nnext\n" + hostile + "\r" + "over\n\xe6\x97")
	for size := 1; size <= len(text); size++ {
		var b bytes.Buffer
		p := &passing{w: &b}
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			if got, err := p.Write(rest[:n]); got != n || err != nil {
				t.Fatal(got, err)
			}
			rest = rest[n:]
		}
		p.end()
		if b.String() != want {
			t.Fatalf("pieces of %d:\n%q, want\n%q", size, b.String(), want)
		}
	}
	if to, _ := passed(&bytes.Buffer{}); to == nil {
		t.Error("nothing takes it")
	} else if _, changed := to.(*passing); changed {
		t.Error("a pipe does not get the bytes")
	}
}
