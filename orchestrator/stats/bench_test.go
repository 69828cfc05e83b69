package stats

import (
	"math/rand/v2"
	"testing"
)

func normals(n int, mean, sd float64) []float64 {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	x := make([]float64, n)
	for i := range x {
		x[i] = mean + sd*rng.NormFloat64()
	}
	return x
}

func inBoots(x []float64, trials int) [][]float64 {
	var out [][]float64
	for ; len(x) > 0; x = x[min(trials, len(x)):] {
		out = append(out, x[:min(trials, len(x))])
	}
	return out
}

func benchSummarise(b *testing.B, trials int) {
	boots := inBoots(normals(1_000_000, 100, 1), trials)
	b.ReportAllocs()
	for b.Loop() {
		Summarise(boots, 0.1)
	}
}

func BenchmarkSummariseMillionOneBoot(b *testing.B) { benchSummarise(b, 1_000_000) }
func BenchmarkSummariseMillionBoots(b *testing.B)   { benchSummarise(b, 1) }
func BenchmarkSummariseMillionInTens(b *testing.B)  { benchSummarise(b, 10) }

func benchCompare(b *testing.B, boots int) {
	x, y := Sample{Values: normals(boots, 100, 1)}, Sample{Values: normals(boots+1, 101, 1)}
	b.ReportAllocs()
	for b.Loop() {
		Compare(x, y)
	}
}

func BenchmarkCompare5(b *testing.B)       { benchCompare(b, 5) }
func BenchmarkCompare15(b *testing.B)      { benchCompare(b, 15) }
func BenchmarkCompare49(b *testing.B)      { benchCompare(b, 49) }
func BenchmarkCompareMillion(b *testing.B) { benchCompare(b, 1_000_000) }

func BenchmarkFamily200(b *testing.B) {
	cases := make([]Case, 200)
	for i := range cases {
		cases[i] = Case{Comparison: Compare(Sample{Values: normals(5, 100, 1)}, Sample{Values: normals(6, 101, 1)}), Better: Higher}
	}
	for b.Loop() {
		for _, c := range Family(cases) {
			Judge(c, Defaults())
		}
	}
}

func BenchmarkChangePointMillion(b *testing.B) {
	x := normals(1_000_000, 100, 1)
	for b.Loop() {
		ChangePoint(x, rand.New(rand.NewPCG(1, 2)))
	}
}
