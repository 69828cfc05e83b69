package targets

import "testing"

func TestAlike(t *testing.T) {
	const a = "6.9.3-ks (build@lab) (mips-gcc 12.3) #41 SMP PREEMPT Thu Jun 6 10:11:12 UTC 2024"
	for _, c := range []struct {
		b    string
		want bool
	}{
		{a, true},
		{"6.9.3-ks (buld@lab) (mips-gcc 12.3) #41 SMP PREEMPT Thu Jun 6 10:11:12 UTC 2024", true},
		{"6..9.3-ks (build@lab) (mips-gcc 12.3) #41 SMP PREEMPT Thu Jun 6 10:11:12 UTC 202", true},
		{"6.9.3-ks (build@lab) (mips-gcc 12.3) #40 SMP PREEMPT Wed Jun 5 09:10:11 UTC 2024", false},
		{"6.9.4-ks (build@lab) (mips-gcc 12.3) #41 SMP PREEMPT Thu Jun 6 10:15:12 UTC 2024", false},
		{"5.15.137-stock (build@lab) #0 Mon Jan 8", false},
		{"", false},
	} {
		if got := alike(a, c.b); got != c.want || alike(c.b, a) != c.want {
			t.Errorf("%q: %v", c.b, got)
		}
	}
	if alike("6.1.0-48 (b@d) #1 SMP", "6.1.0-49 (b@d) #1 SMP") {
		t.Error("another release is taken for noise")
	}
}
