package leaseelection

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) *metav1.MicroTime { return &metav1.MicroTime{Time: now.Add(-d)} }

// candidate returns a candidate with emulation version v and binary version v, or another binary version
// ("1.19.0/1.20.0"), renewed a second ago.
func candidate(
	name, versions string, change ...func(*coordinationv1beta1.LeaseCandidate),
) *coordinationv1beta1.LeaseCandidate {
	emulated, binary, two := strings.Cut(versions, "/")
	if !two {
		binary = emulated
	}
	c := &coordinationv1beta1.LeaseCandidate{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
	}
	c.Spec = coordinationv1beta1.LeaseCandidateSpec{
		LeaseName: "l", EmulationVersion: emulated, BinaryVersion: binary,
		Strategy: coordinationv1.OldestEmulationVersion, RenewTime: ago(time.Second),
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func renewed(d time.Duration) func(*coordinationv1beta1.LeaseCandidate) {
	return func(c *coordinationv1beta1.LeaseCandidate) { c.Spec.RenewTime = ago(d) }
}

func pinged(d time.Duration) func(*coordinationv1beta1.LeaseCandidate) {
	return func(c *coordinationv1beta1.LeaseCandidate) { c.Spec.PingTime = ago(d) }
}

func created(d time.Duration) func(*coordinationv1beta1.LeaseCandidate) {
	return func(c *coordinationv1beta1.LeaseCandidate) { c.CreationTimestamp = metav1.NewTime(now.Add(-d)) }
}

func strategy(s coordinationv1.CoordinatedLeaseStrategy) func(*coordinationv1beta1.LeaseCandidate) {
	return func(c *coordinationv1beta1.LeaseCandidate) { c.Spec.Strategy = s }
}

// lease returns a Lease of ten seconds that holder has renewed.
func lease(holder string, since time.Duration, change ...func(*coordinationv1.LeaseSpec)) *coordinationv1.Lease {
	seconds, by := int32(10), coordinationv1.OldestEmulationVersion
	l := &coordinationv1.Lease{
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: ago(since), AcquireTime: ago(time.Hour),
			Strategy: &by,
		},
	}
	for _, f := range change {
		f(&l.Spec)
	}
	return l
}

// show formats a step as one line.
func show(s Step, err error) string {
	var parts []string
	for _, c := range s.Ping {
		parts = append(parts, "ping "+c.Name)
	}
	if l := s.Lease; l != nil {
		acquired := "acquired"
		if l.AcquireTime == nil {
			acquired = "new"
		}
		parts = append(parts,
			fmt.Sprintf("%s holder=%s preferred=%s for %ds since %s, %s", *l.Strategy, text(l.HolderIdentity),
				text(l.PreferredHolder), *l.LeaseDurationSeconds, now.Sub(l.RenewTime.Time), acquired))
	}
	if err != nil {
		parts = append(parts, err.Error())
	}
	return strings.Join(parts, ", ")
}

func TestNext(t *testing.T) {
	t.Parallel()
	type all = []*coordinationv1beta1.LeaseCandidate
	own := strategy("example.com/own")
	prefers := func(name string) func(*coordinationv1.LeaseSpec) {
		return func(l *coordinationv1.LeaseSpec) { l.PreferredHolder = &name }
	}
	uncoordinated := func(l *coordinationv1.LeaseSpec) { l.Strategy = nil }
	for _, test := range []struct {
		name       string
		lease      *coordinationv1.Lease
		candidates all
		want       string
	}{
		{"one, who is there", nil, all{candidate("a", "1.20.0")},
			"OldestEmulationVersion holder=a preferred= for 5s since 0s, new"},
		{"one, who was there", nil, all{candidate("a", "1.20.0", renewed(6*time.Second))}, "ping a"},
		{"one, who was asked", nil, all{candidate("a", "1.20.0", renewed(6*time.Second), pinged(3*time.Second))}, ""},
		{"one, who has answered", nil, all{candidate("a", "1.20.0", renewed(time.Second), pinged(3*time.Second))},
			"OldestEmulationVersion holder=a preferred= for 5s since 0s, new"},
		{"one, who does not answer", nil, all{candidate("a", "1.20.0", renewed(9*time.Second), pinged(6*time.Second))},
			"no candidate answers"},
		{"one, whose answer is old", nil, all{candidate("a", "1.20.0", renewed(7*time.Second), pinged(8*time.Second))},
			"ping a"},
		{"some are there, others are asked", nil,
			all{candidate("a", "1.20.0"), candidate("b", "1.19.0", renewed(time.Minute))}, "ping b"},
		{"some are there, others do not answer", nil,
			all{candidate("a", "1.20.0"), candidate("b", "1.19.0", renewed(time.Minute), pinged(6*time.Second))},
			"OldestEmulationVersion holder=a preferred= for 5s since 0s, new"},

		{"oldest emulated version", nil,
			all{candidate("a", "1.20.0"), candidate("b", "1.9.0/1.21.0"), candidate("c", "1.20.0")},
			"OldestEmulationVersion holder=b preferred= for 5s since 0s, new"},
		{"then oldest binary", nil, all{candidate("a", "1.19.0/1.20.0"), candidate("b", "1.19.0/1.20.0-rc.1")},
			"OldestEmulationVersion holder=b preferred= for 5s since 0s, new"},
		{"then longest there", nil, all{candidate("a", "1.20.0"), candidate("b", "1.20.0", created(2*time.Hour))},
			"OldestEmulationVersion holder=b preferred= for 5s since 0s, new"},
		{"then first", nil, all{candidate("a", "1.20.0"), candidate("b", "1.20.0")},
			"OldestEmulationVersion holder=a preferred= for 5s since 0s, new"},
		{"one without a version", nil, all{candidate("a", "/1.20.0"), candidate("b", "1.20.0/1.20.0")},
			"OldestEmulationVersion holder=b preferred= for 5s since 0s, new"},
		{"all without a version", nil, all{candidate("a", "/1.20.0")},
			"no candidate has versions that can be compared"},

		{"another strategy", nil, all{candidate("a", "1.20.0", own)},
			"example.com/own holder= preferred= for 5s since 0s, new"},
		{"strategy of the newest", nil, all{candidate("a", "1.20.0"), candidate("b", "1.21.0", own)},
			"example.com/own holder= preferred= for 5s since 0s, new"},
		{"strategy of the newest, older ones differ", nil,
			all{candidate("a", "1.20.0", own), candidate("b", "1.20.0"), candidate("c", "1.21.0")},
			"OldestEmulationVersion holder=a preferred= for 5s since 0s, new"},
		{"two strategies", nil, all{candidate("a", "1.20.0"), candidate("b", "1.20.0", own)},
			`candidates "a", "b" at same binary version but received differing strategies OldestEmulationVersion, example.com/own`},

		{"the best leads", lease("a", time.Second),
			all{candidate("a", "1.19.0", renewed(time.Minute)), candidate("b", "1.20.0", renewed(time.Minute))}, ""},
		{"somebody better comes", lease("a", time.Second), all{candidate("a", "1.20.0"), candidate("b", "1.19.0")},
			"OldestEmulationVersion holder=a preferred=b for 10s since 1s, acquired"},
		{"somebody better may be there", lease("a", time.Second),
			all{candidate("a", "1.20.0"), candidate("b", "1.19.0", renewed(time.Minute))}, "ping b"},
		{"somebody better is preferred already", lease("a", time.Second, prefers("b")),
			all{candidate("a", "1.20.0"), candidate("b", "1.19.0")}, ""},
		{"one leads who is no candidate", lease("x", time.Second, uncoordinated), all{candidate("a", "1.20.0")},
			"OldestEmulationVersion holder=x preferred=a for 10s since 1s, acquired"},
		{"who leads has let go", lease("", time.Second, prefers("a")), all{candidate("a", "1.20.0")},
			"OldestEmulationVersion holder=a preferred= for 5s since 0s, new"},
		{"who led is gone", lease("a", 11*time.Second),
			all{candidate("a", "1.19.0", renewed(20*time.Second), pinged(10*time.Second)), candidate("b", "1.20.0")},
			"OldestEmulationVersion holder=b preferred= for 5s since 0s, new"},
		{"who led is late and still the best", lease("a", 11*time.Second), all{candidate("a", "1.19.0")}, ""},
		{"others elect, and have",
			lease("a", time.Second, func(l *coordinationv1.LeaseSpec) { *l.Strategy = "example.com/own" }),
			all{candidate("b", "1.20.0", own)}, ""},
		{"others elect, and have not", lease("", time.Second, uncoordinated), all{candidate("b", "1.20.0", own)},
			"example.com/own holder= preferred= for 10s since 1s, acquired"},
		{"nobody was asked for long", lease("a", time.Second),
			all{candidate("a", "1.19.0", renewed(15*time.Minute+time.Second)),
				candidate("b", "1.20.0", renewed(time.Minute))}, "ping a, ping b"},
		{"all were asked because it was long", lease("a", time.Second), all{candidate("a", "1.19.0")}, ""},
		{"the lease does not say how long it is good",
			lease("a", time.Second, func(l *coordinationv1.LeaseSpec) { l.LeaseDurationSeconds = nil }),
			all{candidate("b", "1.20.0")}, "OldestEmulationVersion holder=b preferred= for 5s since 0s, new"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := show((&Round{
				Now: now, Lease: test.lease, Candidates: test.candidates,
			}).Next()); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

func TestLeft(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		renewed *metav1.MicroTime
		want    time.Duration
	}{{nil, -1}, {ago(0), 30 * time.Minute}, {ago(30 * time.Minute), 0}, {ago(31 * time.Minute), -time.Minute}} {
		if got := Left(test.renewed, now); got != test.want {
			t.Errorf("%v: %s, want %s", test.renewed, got, test.want)
		}
	}
}
