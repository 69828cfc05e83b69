package results

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kernsweep/targets"
	"kernsweep/workloads"
)

// everyField is a record in which nothing is zero.
func everyField() Record {
	num := 1.5
	s := Slot{Cell: Cell{"malta", "bfs <1>", "iperf.to_target", "größe \"x\"\n"}, Block: 3, Repeat: -1, Boot: 7}
	a := &Activity{Samples: 3, Seconds: 2.5, Switches: 4.8, Interrupts: 266, User: 33.8, System: 66.2, Idle: 1, Wait: 2, Steal: 3, RunDelay: &num, Timeslices: &num,
		Missing: []string{"st"}, Warnings: []string{"a & b"}}
	v := workloads.Value{Metric: workloads.Metric{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}, Value: -1.25e-7, Missing: "no",
		Resolution: 0.1, N: 5, SD: 1e300, Each: []float64{1, 2.5, -0}}
	return Record{Seq: 12, Run: "00ff", Lane: "malta", LaneSeq: 4, At: time.Date(2026, 11, 30, 1, 2, 3, 456, time.FixedZone("", 3600)), UpMS: 99, Kind: KindJudged,
		Slot: &s, Attempt: 2, Phase: targets.Phase("asked"), Boot: &Boot{Number: 3, Kernel: "bfs", Outcome: OK, LastLines: []string{"\u2028"}}, Outcome: Invalid,
		Reason: "\x1b[2J \ufffd 😀", Collect: "c", Parsed: &workloads.Parsed{Values: []workloads.Value{v, {}}, Warnings: []string{"w", ""}, Notes: []string{"n"}},
		Summary: a, Peer: a, Note: "note", Task: &Task{Machine: "m"}, Knob: &KnobChange{BootID: "x"}, Cut: &Cut{Block: 2}, Enough: &Enough{Blocks: 5},
		Findings: []Finding{{Rule: "r", Hard: true, Text: "t"}}}
}

// The fast decoder knows every field that is written: none is left to the slow one.
func TestDecoderKnowsEveryField(t *testing.T) {
	full := everyField()
	for i, r := range []Record{full, {Seq: 1, Kind: KindRun}, {Seq: 1, Kind: KindJudged, Parsed: &workloads.Parsed{Values: []workloads.Value{}}}} {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		d := decoder{texts: map[string]string{}, b: b}
		var got Record
		d.object(func(key string) int { return d.recordField(&got, key) })
		if d.bad || d.i != len(b) {
			t.Fatalf("record %d: given up at %q", i, b[d.i:])
		}
		var want Record
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// Whatever a line holds, the decoder says of it what encoding/json says.
func FuzzDecoder(f *testing.F) {
	b, err := json.Marshal(everyField())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	for _, s := range []string{`{}`, `{"seq":1,"seq":2}`, `{"Seq":1}`, `{"seq":01}`, `{"seq":1.0}`, `{"seq":1e2}`, `{"seq":-0}`, `{"seq":99999999999999999999}`,
		`{"lane":null}`, `{"slot":null,"parsed":null}`, `{"parsed":{"values":null}}`, `{"parsed":{"values":[{"value":1e999}]}}`, `{"parsed":{"values":[{"value":1.}]}}`,
		`{"parsed":{"values":[{"each":[1,2,[3]]}]}}`, `{"parsed":{"values":[{"each":[]}]}}`, `{"note":"\ud800"}`, "{\"note\":\"\xff\"}", "{\"note\":\"a\tb\"}", `{"note":"a`, `{"note":"\u0041"}`,
		`{"kind":"x","note":5}`, `{"unknown":{"a":[1,"}"]},"seq":3}`, `{"seq":1,}`, `{"seq":1}x`, ` {"seq":1}`, `{"seq" :1}`, `{"at":"yesterday"}`, `{"at":null}`,
		`{"boot":{"number":1}}`, `{"boot":[}`, `{"findings":[]}`, `[]`, `null`, `"x"`, `{"slot":{"target":"a"},"slot":{"kernel":"b"}}`, `{"parsed":{"warnings":[]}}`, `{"parsed":{"values":[{"value":-}]}}`,
		`{"parsed":{"values":[{"primary":truex}]}}`, `{"parsed":{"values":[{"value":+1}]}}`, `{"parsed":{"values":[{"value":0.5e-3,"n":3}]}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var d decoder
		for range 2 { // the second time with texts that are kept
			got, err := d.record(body)
			var want Record
			wantErr := json.Unmarshal(body, &want)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("%q: %v, encoding/json: %v", body, err, wantErr)
			}
			if err != nil {
				continue
			}
			if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })); diff != "" {
				t.Fatalf("%q: %s", body, diff)
			}
		}
	})
}

func BenchmarkDecoder(b *testing.B) {
	body, err := json.Marshal(everyField())
	if err != nil {
		b.Fatal(err)
	}
	var d decoder
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := d.record(body); err != nil {
			b.Fatal(err)
		}
	}
}
