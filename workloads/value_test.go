package workloads

import (
	"encoding/json"
	"strings"
	"testing"
)

// A reader that takes the value and never looks for the reason finds no 0; a 0
// that was measured is there.
func TestValueInJSON(t *testing.T) {
	loss := Metric{Name: "loss", Unit: "%", Better: LowerIsBetter}
	for _, c := range []struct {
		v    Value
		want bool
	}{
		{Value{Metric: loss, Resolution: 0.1}, true},
		{Value{Metric: loss, Missing: "the tool printed no loss"}, false},
	} {
		b, err := json.Marshal(c.v)
		var back Value
		if err != nil || json.Unmarshal(b, &back) != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), `"value":0`) != c.want || back.Name != "loss" || back.Missing != c.v.Missing || back.Resolution != c.v.Resolution {
			t.Errorf("%s", b)
		}
	}
}
