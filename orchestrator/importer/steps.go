package importer

import "math"

// steps gives the values of a table the step that their column was printed with.
// R, spreadsheets and most languages leave zeros at the end away, so that "1"
// stands beside "0.993": its last digit says nothing of how exact it is. A column
// has one format, with fixed places or fixed digits: no value is printed with
// fewer places than a larger one, nor, for each power of ten that it is larger
// than another, with a step of more than ten times the other's.
func (m *Import) steps(first int) {
	finest := map[int32]map[int]float64{} // of a metric, by the power of ten
	each := func(do func(*val)) {
		for i := first; i < len(m.trials); i++ {
			for k := m.trials[i].from; k < m.trials[i].to; k++ {
				if v := &m.vals[k]; v.why == 0 && v.n <= 1 {
					do(v)
				}
			}
		}
	}
	each(func(v *val) {
		if v.v == 0 {
			return // "0" may have any number of places
		}
		of, p := finest[v.metric], power(v.v)
		if of == nil {
			of = map[int]float64{}
			finest[v.metric] = of
		}
		if s, ok := of[p]; !ok || v.res < s {
			of[p] = v.res
		}
	})
	each(func(v *val) {
		for p, s := range finest[v.metric] {
			if v.v != 0 {
				s *= math.Pow(10, float64(max(0, power(v.v)-p)))
			}
			v.res = min(v.res, s)
		}
	})
}

// power of ten of a number that is not 0.
func power(v float64) int { return int(math.Floor(math.Log10(math.Abs(v)))) }
