package stats

import "math"

// Reported takes in what the tool printed about the averages it gave as values:
// one Moments for each boot of Raw, in its order. N below 2 says that the boot's
// values are its trials. The trials behind an average are not on file, so that
// Min and Max are missing; SDWithin and SD are those of the trials all the same.
func (s *Summary) Reported(boots ...Moments) {
	if len(boots) != len(s.Raw) || s.Boots == 0 {
		return
	}
	each := make([]Moments, len(s.Raw))
	trials, averages := 0, 0
	for i, b := range s.Raw {
		each[i] = MomentsOf(b)
		if m := boots[i]; m.N > 1 && len(b) == 1 && Num(m.SD).OK() && m.SD >= 0 {
			each[i].N, each[i].SD = m.N, m.SD
			averages++
		}
		trials += each[i].N
	}
	if averages == 0 {
		return
	}
	s.Averages, s.Trials = averages, trials
	within, _ := s.pool(each)
	s.SDWithin = Num(within)
	s.Min = Missing("the tool printed an average of its runs")
	s.Max = s.Min
}

// HalfWidth of the cell's 95 % interval as a share of its mean: what the rule
// that ends a sweep with boots = "auto" looks at. It does not depend on where the
// interval lies. It is missing with fewer than 2 boots.
func (s *Summary) HalfWidth(resolution float64) Number {
	if s.GeoMean.OK() {
		switch {
		case !s.CILow.OK():
			return s.CILow
		case !s.CIHigh.OK():
			return s.CIHigh
		}
		return numOr(math.Expm1((logOf(s.CIHigh.Value)-logOf(s.CILow.Value))/2), "more than a number holds")
	}
	if s.Boots < 2 {
		return Missing("%s", count(s.Boots, "boot", "boots"))
	}
	m, q := MomentsOf(s.BootValues), goodStep(resolution)
	half := quantileT(0.975, float64(m.N-1)) * math.Sqrt((m.SD*m.SD+q*q/12)/float64(m.N))
	switch {
	case half == 0:
		return Num(0)
	case m.Mean == 0:
		return Missing("the mean is 0")
	}
	return numOr(half/math.Abs(m.Mean), "more than a number holds")
}
