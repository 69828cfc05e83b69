package web

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kernsweep/orchestrator/live"
)

const (
	countedRuns = 200  // the newest
	seriesMost  = 5000 // of trials of live runs
)

// metrics are what /metrics tells, read anew for each who asks.
type metrics struct {
	s       *Server
	all     prometheus.Gatherer
	serve   http.HandlerFunc
	asked   *prometheus.CounterVec
	took    *prometheus.HistogramVec
	runs    *prometheus.Desc
	trials  *prometheus.Desc
	left    *prometheus.Desc
	lane    *prometheus.Desc
	laneEnd *prometheus.Desc
	boots   *prometheus.Desc
	planned *prometheus.Desc
	lastAge *prometheus.Desc
	lastEnd *prometheus.Desc
	leases  *prometheus.Desc
	streams *prometheus.Desc
	missing *prometheus.Desc
}

func newMetrics(s *Server) *metrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("kernsweep_"+name, help, labels, nil)
	}
	m := &metrics{
		s: s,
		asked: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kernsweep_http_requests_total", Help: "Requests to this page, by route, method and status."},
			[]string{"route", "method", "code"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kernsweep_http_request_duration_seconds",
			Help: "How long answers took, streams left out.", Buckets: []float64{.001, .005, .025, .1, .5, 2, 10}}, []string{"route"}),
		runs:    desc("runs", "Runs by state, of the newest 200.", "state"),
		trials:  desc("trials", "Trials of live runs that have an outcome. A slot counts once, by its newest attempt.", "sweep", "target", "kernel", "outcome"),
		left:    desc("run_left_seconds", "Estimated time to the end of a live run. Absent while it is not known.", "sweep"),
		lane:    desc("lane_state", "1 for the state in which a lane of a live run is, 0 for the others.", "sweep", "target", "state"),
		laneEnd: desc("lane_left_seconds", "Estimated time to the end of a lane of a live run. Absent while it is not known.", "sweep", "target"),
		boots:   desc("lane_boots", "Boots of a lane of a live run that were judged.", "sweep", "target"),
		planned: desc("lane_boots_planned", "Boots planned for a lane of a live run.", "sweep", "target"),
		lastAge: desc("last_run_age_seconds", "Time since a run has ended last. Absent when none has."),
		lastEnd: desc("last_run_exit_status", "Exit status of the run that ended last: 0 all trials ok, 1 a kernel or workload failed, 3 a target was lost, 130 interrupted."),
		leases:  desc("leases", "Leases on this machine, by whether their holders live.", "state"),
		streams: desc("http_streams", "Pages that are being followed now."),
		missing: desc("metrics_left_out", "Series of trials that are left out because there are too many."),
	}
	reg := prometheus.NewPedanticRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: "kernsweep_build_info", Help: "1, with the version of this program.",
		ConstLabels: prometheus.Labels{"version": s.opt.Version, "goversion": runtime.Version()}})
	info.Set(1)
	reg.MustRegister(m, m.asked, m.took, info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h := promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: 20 * time.Second})
	m.all, m.serve = reg, h.ServeHTTP
	return m
}

// Describe is for prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.runs, m.trials, m.left, m.lane, m.laneEnd, m.boots, m.planned, m.lastAge, m.lastEnd, m.leases, m.streams, m.missing} {
		ch <- d
	}
}

// Collect is for prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		for i := range labels {
			labels[i] = live.Safe(labels[i])
		}
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	m.collectRuns(gauge)
	m.collectLive(gauge)
	held := map[string]int{}
	for _, l := range m.s.leases().Leases {
		held[l.State]++
	}
	for state, n := range held {
		gauge(m.leases, float64(n), state)
	}
	gauge(m.streams, float64(m.s.streams.Load()))
}

type gauges func(d *prometheus.Desc, v float64, labels ...string)

func (m *metrics) collectRuns(gauge gauges) {
	list, _, err := m.s.statuses("", countedRuns)
	if err != nil {
		return // the runs are then absent
	}
	states := map[string]int{}
	for _, st := range list {
		states[st.State]++
	}
	for state, n := range states {
		gauge(m.runs, float64(n), state)
	}
	var last *Status
	for i, st := range list {
		if st.Exit != nil && !st.Ended.IsZero() && (last == nil || st.Ended.After(last.Ended)) {
			last = &list[i]
		}
	}
	if last != nil {
		gauge(m.lastAge, m.s.now().Sub(last.Ended).Seconds())
		gauge(m.lastEnd, float64(*last.Exit))
	}
}

// collectLive tells of live runs. A target is in one of them at most, so sweep and
// target name a lane; of two runs that claim the same, the newer one counts.
func (m *metrics) collectLive(gauge gauges) {
	type lane struct{ sweep, target string }
	seen, swept := map[lane]bool{}, map[string]bool{}
	series, out := 0, 0
	for _, f := range m.s.liveRuns() {
		v := f.moment().view
		if v.LeftS != nil && !swept[v.Sweep] {
			gauge(m.left, *v.LeftS, v.Sweep)
		}
		swept[v.Sweep] = true
		ours := map[string]bool{}
		for _, l := range v.Lanes {
			if seen[lane{v.Sweep, l.Name}] {
				continue
			}
			seen[lane{v.Sweep, l.Name}], ours[l.Name] = true, true
			m.collectLane(gauge, v.Sweep, l)
		}
		for k, n := range f.tallied() {
			if !ours[k.target] {
				continue
			}
			if series++; series > seriesMost {
				out++
				continue
			}
			gauge(m.trials, float64(n), v.Sweep, k.target, k.kernel, string(k.outcome))
		}
	}
	gauge(m.missing, float64(out))
}

func (m *metrics) collectLane(gauge gauges, sweep string, l live.LaneView) {
	for _, state := range []live.LaneState{live.Waiting, live.Running, live.Paused, live.LaneEnded, live.Interrupted, live.Quarantined} {
		is := 0.0
		if l.State == state {
			is = 1
		}
		gauge(m.lane, is, sweep, l.Name, string(state))
	}
	if l.LeftS != nil {
		gauge(m.laneEnd, *l.LeftS, sweep, l.Name)
	}
	gauge(m.boots, float64(l.Booted), sweep, l.Name)
	gauge(m.planned, float64(l.Boots), sweep, l.Name)
}

// answered counts a request.
func (m *metrics) answered(r *http.Request, code int, took time.Duration) {
	route := r.Pattern // set by the routes; it has no names of runs
	if route == "" || route == "/" {
		route = "none"
	}
	method := r.Method
	if method != http.MethodGet && method != http.MethodPost && method != http.MethodHead {
		method = "other"
	}
	m.asked.WithLabelValues(route, method, strconv.Itoa(code)).Inc()
	if !m.s.streaming[route] {
		m.took.WithLabelValues(route).Observe(took.Seconds())
	}
}
