package stats

import (
	"strings"
	"testing"
)

func judge(t *testing.T, base, v []float64, b Better) (Verdict, string) {
	t.Helper()
	return Judge(Family([]Case{{Comparison: Compare(Sample{Values: base}, Sample{Values: v}), Better: b}})[0], Defaults())
}

func TestVerdicts(t *testing.T) {
	ref := []float64{100, 100.4, 99.8, 100.1, 99.7}
	for name, c := range map[string]struct {
		base, v []float64
		better  Better
		want    Verdict
		reason  []string // that the reason holds
	}{
		"3 against 3": {[]float64{23, 22.9, 22.9}, []float64{32, 31.9, 31.9}, Higher, Inconclusive,
			[]string{"+39.2 %", "3 boots of the baseline and 3 of the kernel", "at least 4"}},
		"1 against 1":             {[]float64{100}, []float64{139}, Higher, Inconclusive, []string{"+39.0 %", "1 boot of the baseline and 1 of the kernel"}},
		"more of a throughput":    {ref, []float64{103, 103.4, 102.8, 103.1, 102.7}, Higher, Faster, nil},
		"more of a time":          {ref, []float64{103, 103.4, 102.8, 103.1, 102.7}, Lower, Slower, nil},
		"less of a time":          {ref, []float64{97, 97.4, 96.8, 97.1, 96.7}, Lower, Faster, nil},
		"alike":                   {ref, []float64{100.1, 100.3, 99.9, 100, 99.8}, Higher, Same, []string{"90 % interval", "within ±1.0 %"}},
		"clear, but small":        {ref, []float64{100.5, 100.9, 100.3, 100.6, 100.2}, Higher, Same, nil},
		"clear, and nearly 1 %":   {ref, []float64{100.9, 101.3, 100.7, 101.0, 100.6}, Higher, NoEvidence, []string{"no practical difference shown", "+0.9 %", "1.0 %"}},
		"wide":                    {[]float64{100, 104, 97, 101, 95}, []float64{101, 97, 106, 99, 103}, Higher, Inconclusive, []string{"+1.8 %", "half width", "1.0 % is wanted"}},
		"narrow enough, shifted":  {[]float64{100, 100.7, 99.3, 100.3, 99.7}, []float64{100.6, 101.3, 99.9, 100.9, 100.3}, Higher, NoEvidence, []string{"holds 0"}},
		"equal, exactly":          {[]float64{7, 7, 7, 7}, []float64{7, 7, 7, 7, 7}, Higher, Same, nil},
		"different, exactly":      {[]float64{7, 7, 7, 7}, []float64{8, 8, 8, 8}, Lower, Slower, nil},
		"nothing":                 {nil, ref, Higher, Inconclusive, []string{"no boot of the baseline has a value"}},
		"no loss on either":       {[]float64{0, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0}, Lower, Same, nil},
		"loss where none was":     {[]float64{0, 0, 0, 0, 0}, []float64{2, 2.1, 1.9, 2, 2.2}, Lower, Slower, nil},
		"loss, now and then":      {[]float64{0, 0, 0.1, 0, 0}, []float64{0, 0.2, 0, 0, 0}, Lower, Inconclusive, []string{"+0.02", "half width"}},
		"loss twice as high":      {[]float64{0, 1, 1.1, 0.9, 1}, []float64{3, 3.1, 2.9, 3, 3.2}, Lower, Slower, nil},
		"a lone loss, far higher": {[]float64{0, 1e-9, 0, 0, 0}, []float64{5, 5, 5, 5, 5.1}, Lower, Slower, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := judge(t, c.base, c.v, c.better)
			if got != c.want {
				t.Errorf("%s (%s), want %s", got, why, c.want)
			}
			for _, part := range c.reason {
				if !strings.Contains(why, part) {
					t.Errorf("reason %q lacks %q", why, part)
				}
			}
			if (why == "") != (got == Faster || got == Slower) {
				t.Errorf("%s because of %q", got, why)
			}
		})
	}
}

// A mean of 0 has no share: the printed step is then what matters.
func TestStepIsTheEffectBesideAMeanOfZero(t *testing.T) {
	zero := Sample{Values: []float64{0, 0, 0, 0, 0}, Resolution: 0.1}
	if v, why := Judge(Case{Comparison: Compare(zero, zero), Better: Lower}, Defaults()); v != Same {
		t.Errorf("%s: %s", v, why)
	}
	one := Compare(zero, Sample{Values: []float64{0, 0, 0, 0.1, 0}, Resolution: 0.1})
	if v, why := Judge(Case{Comparison: one, Better: Lower}, Defaults()); v != Same {
		t.Errorf("%s: %s", v, why)
	}
}

// 4 boots a side give p 0.029 at best: enough alone, not in a family of two.
func TestFamilyNeedsMoreBoots(t *testing.T) {
	c := Case{Better: Higher, Comparison: Compare(Sample{Values: []float64{100, 101, 100.5, 99.8}}, Sample{Values: []float64{120, 121, 120.5, 119.8}})}
	if v, why := Judge(Family([]Case{c})[0], Defaults()); v != Faster {
		t.Fatalf("alone: %s (%s)", v, why)
	}
	other := Case{Better: Higher, Comparison: Compare(Sample{Values: []float64{100, 101, 100.5, 99.8}}, Sample{Values: []float64{100, 101.5, 99.9, 100.7}})}
	f := Family([]Case{c, other})
	close9(t, "holm attainable", f[0].HolmAttainable, 2*2.0/70)
	v, why := Judge(f[0], Defaults())
	if v != Inconclusive || !strings.Contains(why, "0.057 at best after correction over the family") || !strings.Contains(why, "1 more of each") {
		t.Errorf("in a family: %s (%s)", v, why)
	}
	// The other one, were it the best it can be, would share the first place.
	close9(t, "other", f[1].HolmAttainable, 2*2.0/70)
}

func TestHolmAttainableGivesWayToSmallerOnes(t *testing.T) {
	cases := []Case{
		{Comparison: Comparison{P: Num(0.001), Attainable: Num(0.001)}},
		{Comparison: Comparison{P: Num(0.6), Attainable: Num(0.0079)}},
		{Comparison: Comparison{P: Num(0.9), Attainable: Num(0.0079)}},
		{Comparison: Comparison{P: Missing("one boot"), Attainable: Num(1)}},
	}
	f := Family(cases)
	close9(t, "first", f[0].HolmAttainable, 0.003)
	close9(t, "second", f[1].HolmAttainable, 0.0158)
	close9(t, "its holm", f[1].Holm, 1)
	if f[3].Holm.Missing != "one boot" || f[3].HolmAttainable.OK() || cases[0].Holm.Value != 0 {
		t.Errorf("%+v", f)
	}
}

// A case that no family was made for is one of its own, never significant by
// having no p.
func TestJudgeWithoutFamily(t *testing.T) {
	c := Case{Better: Higher, Comparison: Compare(Sample{Values: []float64{100, 104, 97, 101, 95}}, Sample{Values: []float64{101, 97, 106, 99, 103}})}
	if v, why := Judge(c, Defaults()); v != Inconclusive {
		t.Errorf("%s: %s", v, why)
	}
}

// Significant alone, and not so in its family: what was seen is not denied.
func TestIntervalWithoutZeroYetNotSignificant(t *testing.T) {
	cases := []Case{{Better: Higher, Comparison: Compare(Sample{Values: []float64{100, 104, 97, 101, 99, 100}}, Sample{Values: []float64{106, 101, 109, 103, 104, 107}})}}
	for range 5 {
		cases = append(cases, Case{Better: Higher, Comparison: Comparison{P: Num(0.5), Attainable: Num(0.002)}})
	}
	v, why := Judge(Family(cases)[0], Defaults())
	if v != Inconclusive || !strings.Contains(why, "leaves 0 out") || !strings.Contains(why, "after correction over the family is above 0.05") {
		t.Errorf("%s: %s", v, why)
	}
}

// A common drift of 0.75 a boot and no difference (the order that hides it, and
// the one that makes it look like one).
func TestBlockedOrderIsNoDifference(t *testing.T) {
	side := func(at ...int) Sample {
		s := Sample{Order: at}
		for _, i := range at {
			s.Values = append(s.Values, 50+0.75*float64(i))
		}
		return s
	}
	abba := Compare(side(0, 3, 4, 7, 8, 11), side(1, 2, 5, 6, 9, 10))
	if v, _ := Judge(Case{Comparison: abba, Better: Lower}, Defaults()); v == Faster || v == Slower || abba.MixedUp || abba.Change.Value > 1e-3 {
		t.Errorf("ABBA: %s %+v", v, abba)
	}
	a, b := side(0, 1, 2, 3, 4, 5), side(6, 7, 8, 9, 10, 11)
	blocked := Compare(a, b)
	v, why := Judge(Case{Comparison: blocked, Better: Lower}, Defaults())
	if v != Inconclusive || !blocked.MixedUp || !strings.Contains(why, "order and kernel cannot be told apart") || !strings.Contains(blocked.Note, "cannot be told apart") {
		t.Errorf("blocked: %s (%s) %+v", v, why, blocked)
	}
	for name, d := range map[string]Drifted{"blocked": Drift(0.01, a, b), "abba": Drift(0.01, side(0, 3, 4, 7, 8, 11), side(1, 2, 5, 6, 9, 10))} {
		if !d.Flag || d.Total.Value < 0.13 || d.Total.Value > 0.17 {
			t.Errorf("%s: the drift of 15 %% is %+v", name, d)
		}
	}
}
