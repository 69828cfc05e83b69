package stats

// Rules are the thresholds of a judgement.
type Rules struct {
	Alpha     float64 // of a family of primary comparisons
	HalfWidth float64 // of a 95 % interval that is narrow enough, as a share: 0.01 = 1 %
	Effect    float64 // smallest effect of interest, as a share
	MinBoots  int     // on each side, below which nothing is claimed
	MaxBoots  int     // of each kernel, above which Ahead asks for none; 0: 15
}

// Defaults are those of the design that the simulation checks.
func Defaults() Rules {
	return Rules{Alpha: 0.05, HalfWidth: 0.01, Effect: 0.01, MinBoots: 4, MaxBoots: 15}
}

// Better says which direction of change is wanted.
type Better int

// Directions.
const (
	Higher Better = +1
	Lower  Better = -1
)

// Verdict of a comparison (DESIGN.md section 2).
type Verdict string

// Verdicts.
const (
	Faster       Verdict = "faster"
	Slower       Verdict = "slower"
	Same         Verdict = "same"
	NoEvidence   Verdict = "no evidence"
	Inconclusive Verdict = "inconclusive"
	Invalid      Verdict = "invalid"
	DidNotBoot   Verdict = "did not boot"
)
