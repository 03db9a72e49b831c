package flow

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bowsprit/bowsprit/internal/front/flow/queue"
)

// describe returns the description of a metric. Names, labels and texts are kube-apiserver's.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("apiserver_flowcontrol_"+name, help, labels, nil)
}

// descriptions emits metrics. Their descriptions are made on each Collect, which is rare.
type descriptions struct {
	emit chan<- prometheus.Metric
}

func (d descriptions) put(kind prometheus.ValueType, name, help string, v float64, labels ...label) {
	names, values := split(labels)
	d.emit <- prometheus.MustNewConstMetric(describe(name, help, names...), kind, v, values...)
}

func (d descriptions) gauge(name, help string, v float64, labels ...label) {
	d.put(prometheus.GaugeValue, name, help, v, labels...)
}

func (d descriptions) counter(name, help string, v uint64, labels ...label) {
	if v > 0 {
		d.put(prometheus.CounterValue, name, help, float64(v), labels...)
	}
}

// histogram emits h, unless it is empty.
func (d descriptions) histogram(name, help string, h *histogram, labels ...label) {
	if h.counts == nil {
		return
	}
	names, values := split(labels)
	buckets, count := make(map[float64]uint64, len(h.bounds)), uint64(0)
	for i, bound := range h.bounds {
		count += h.counts[i]
		buckets[bound] = count
	}
	count += h.counts[len(h.bounds)]
	d.emit <- prometheus.MustNewConstHistogram(describe(name, help, names...), count, h.sum, buckets, values...)
}

type label struct{ name, value string }

func split(labels []label) (names, values []string) {
	for _, l := range labels {
		names, values = append(names, l.name), append(values, l.value)
	}
	return names, values
}

func ofLevel(name string) label  { return label{"priority_level", name} }
func ofSchema(name string) label { return label{"flow_schema", name} }

// Describe implements prometheus.Collector; the metrics are unchecked.
func (c *Controller) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. The metrics of a level are consistent with each other.
func (c *Controller) Collect(emit chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := descriptions{emit}
	d.gauge("seat_fair_frac",
		"Fair fraction of server's concurrency to allocate to each priority level that can use it", c.fair)
	for _, l := range c.levels {
		c.collectLevel(d, l)
	}
	for i, name := range []string{"readOnly", "mutating"} {
		k := c.kinds[i]
		k.mu.Lock()
		for phase, value := range []string{"waiting", "executing"} {
			k.phases[phase].settle(c.now())
			d.histogram("read_vs_write_current_requests",
				"EXPERIMENTAL: Observations, at the end of every nanosecond, of the number of requests (as a "+
					"fraction of the relevant limit) waiting or in regular stage of execution",
				&k.phases[phase].histogram, label{"phase", value}, label{"request_kind", name})
		}
		k.mu.Unlock()
	}
}

func (c *Controller) collectLevel(d descriptions, l *level) {
	level := ofLevel(l.name)
	d.gauge("nominal_limit_seats", "Nominal number of execution seats configured for each priority level",
		float64(l.nominal), level)
	d.gauge("lower_limit_seats", "Configured lower bound on number of execution seats available to each priority level",
		float64(l.lowest), level)
	d.gauge("upper_limit_seats", "Configured upper bound on number of execution seats available to each priority level",
		float64(l.highest), level)
	d.gauge("current_limit_seats", "current derived number of execution seats available to each priority level",
		float64(l.current), level)
	d.gauge("demand_seats_high_watermark", "High watermark, over last adjustment period, of demand_seats",
		float64(l.stats.peak), level)
	d.gauge("demand_seats_average", "Time-weighted average, over last adjustment period, of demand_seats",
		l.stats.average, level)
	d.gauge("demand_seats_stdev",
		"Time-weighted standard deviation, over last adjustment period, of demand_seats", l.stats.deviation, level)
	d.gauge("demand_seats_smoothed", "Smoothed seat demands", l.stats.smoothed, level)
	d.gauge("target_seats", "Seat allocation targets", l.target, level)
	l.set.Locked(func(_ queue.Usage, p queue.Progress) {
		c.collectUse(d, l)
		collectProgress(d, level, p)
		for _, k := range l.classes {
			collectCounts(d, level, k)
			k.collectHistograms(d, level)
		}
	})
}

// collectUse shows how much of a level was used. The caller holds the lock of the level's set.
func (c *Controller) collectUse(d descriptions, l *level) {
	const requests = "EXPERIMENTAL: Observations, at the end of every nanosecond, of number of requests (as a " +
		"fraction of the relevant limit) waiting or in any stage of execution (but only initial stage for WATCHes)"
	now, level := c.now(), ofLevel(l.name)
	for _, r := range []*ratio{&l.seatUse, &l.waitUse, &l.runUse, &l.demandUse} {
		r.settle(now)
	}
	d.histogram("priority_level_seat_utilization",
		"EXPERIMENTAL: Observations, at the end of every nanosecond, of utilization of seats for any stage of "+
			"execution (but only initial stage for WATCHes)",
		&l.seatUse.histogram, label{"phase", "executing"}, level)
	d.histogram("priority_level_request_utilization", requests, &l.waitUse.histogram, label{"phase", "waiting"}, level)
	d.histogram("priority_level_request_utilization", requests, &l.runUse.histogram, label{"phase", "executing"}, level)
	d.histogram("demand_seats",
		"EXPERIMENTAL: Observations, at the end of every nanosecond, of (the number of seats each priority level "+
			"could use) / (nominal number of seats for that level)", &l.demandUse.histogram, level)
}

func collectProgress(d descriptions, level label, p queue.Progress) {
	const bounds = "min and max, over queues, of S(oldest waiting request in queue)"
	d.gauge("current_r", "R(time of last change)", p.R.Seconds(), level)
	d.gauge("dispatch_r", "R(time of last dispatch)", p.DispatchR.Seconds(), level)
	d.gauge("latest_s", "S(most recently dispatched request)", p.Latest.Seconds(), level)
	d.gauge("next_s_bounds", bounds, p.Low.Seconds(), level, label{"bound", "min"})
	d.gauge("next_s_bounds", bounds, p.High.Seconds(), level, label{"bound", "max"})
	d.gauge("next_discounted_s_bounds", bounds+" - estimated work in progress", p.DiscountLow.Seconds(), level,
		label{"bound", "min"})
	d.gauge("next_discounted_s_bounds", bounds+" - estimated work in progress", p.DiscountUp.Seconds(), level,
		label{"bound", "max"})
	d.counter("epoch_advance_total", "Number of times the queueset's progress meter jumped backward",
		uint64(p.Epochs), level, label{"success", "true"})
}

// collectCounts emits the counters of a class. The caller holds its lock.
func collectCounts(d descriptions, level label, k *class) {
	n, schema := &k.counts, ofSchema(k.name)
	d.counter("dispatched_requests_total", "Number of requests executed by API Priority and Fairness subsystem",
		n.Dispatched, level, schema)
	for verdict, reason := range map[queue.Verdict]string{
		queue.Full: "queue-full", queue.NoSeat: "concurrency-limit", queue.Wait: "time-out",
	} {
		d.counter("rejected_requests_total", "Number of requests rejected by API Priority and Fairness subsystem",
			n.Rejected[verdict], level, schema, label{"reason", reason})
	}
	d.counter("request_dispatch_no_accommodation_total",
		"Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats",
		n.NoRoom, level, schema)
	if n.Dispatched+n.Rejected[queue.Full]+n.Rejected[queue.NoSeat]+n.Rejected[queue.Wait] == 0 && n.Waiting == 0 {
		return // never used
	}
	d.gauge("current_inqueue_requests",
		"Number of requests currently pending in queues of the API Priority and Fairness subsystem",
		float64(n.Waiting), level, schema)
	d.gauge("current_inqueue_seats",
		"Number of seats currently pending in queues of the API Priority and Fairness subsystem",
		float64(n.WaitingSeats), level, schema)
	d.gauge("current_executing_requests",
		"Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority "+
			"and Fairness subsystem", float64(n.Executing), level, schema)
	d.gauge("current_executing_seats",
		"Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage "+
			"otherwise) requests in the API Priority and Fairness subsystem", float64(n.Seats), level, schema)
}

// collectHistograms shows the rest. The caller holds the lock of the class's set.
func (k *class) collectHistograms(d descriptions, level label) {
	schema := ofSchema(k.name)
	for i, ran := range []string{"false", "true"} {
		d.histogram("request_wait_duration_seconds", "Length of time a request spent waiting in its queue",
			&k.waits[i], level, schema, label{"execute", ran})
	}
	for i, kind := range []string{"regular", watchVerb} {
		d.histogram("request_execution_seconds",
			"Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the "+
				"API Priority and Fairness subsystem", &k.runs[i], level, schema, label{"type", kind})
	}
	d.histogram("request_queue_length_after_enqueue",
		"Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued",
		&k.lengths, level, schema)
	d.histogram("watch_count_samples", "count of watchers for mutating requests in API Priority and Fairness",
		&k.watches, level, schema)
	d.histogram("work_estimated_seats",
		"Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority "+
			"and Fairness", &k.seats, level, schema)
}

// InFlight returns how many reads, or writes, run now.
func (c *Controller) InFlight(writes bool) int {
	k := c.kinds[kind(writes)]
	k.mu.Lock()
	defer k.mu.Unlock()
	return int(k.phases[executing].value)
}
