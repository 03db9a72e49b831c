package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestManyEventsAreCombined checks that of many events about an object with different messages nine are written
// separately and the others are combined; after 25 there is one more each five minutes. Events about other objects, and
// events of the newer kind, are not affected.
func TestManyEventsAreCombined(t *testing.T) {
	t.Parallel()
	c, now := newCorrelator(), time.Unix(1, 0)
	report := func(about, message, action string) string {
		one := report{at: now, Event: Event{
			About: corev1.ObjectReference{Name: about, ResourceVersion: message}, Reason: "Made", Message: message,
			Action: action,
		}}
		if !c.correlate(&one) {
			return "dropped"
		}
		all := one.Event
		all.About.ResourceVersion, all.Message = "", ""
		if one.combined != (one.key == keyOf(all)) {
			t.Errorf("%+v has the key of others, or not", one.Event)
		}
		return one.Message
	}
	var got []string
	for i := range 27 {
		got = append(got, report("set", fmt.Sprint(i), ""))
	}
	var want []string
	for i := range 27 {
		switch {
		case i < 9:
			want = append(want, fmt.Sprint(i))
		case i < 25:
			want = append(want, "(combined from similar events): "+fmt.Sprint(i))
		default:
			want = append(want, "dropped")
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := report("other", "27", ""); got != "27" {
		t.Errorf("another object: %q", got)
	}
	if got := report("set", "27", "Binding"); got != "27" {
		t.Errorf("an event of the newer kind: %q", got)
	}
	now = now.Add(5 * time.Minute)
	if got := []string{report("set", "3", ""), report("set", "4", "")}; !slices.Equal(got, []string{"3", "dropped"}) {
		t.Errorf("after five minutes: %q", got)
	}
	now = now.Add(11 * time.Minute) // since the last one
	if got := report("set", "28", ""); got != "28" {
		t.Errorf("after eleven minutes more: %q", got)
	}
}

// TestCorrelatorMatchesKubernetes compares the results for random reports with client-go's recorder. With more than
// nine messages none is repeated, since Kubernetes then tracks a random subset.
func TestCorrelatorMatchesKubernetes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
		theirs, ours := record.NewEventCorrelator(clock), newCorrelator()
		for i := range 400 {
			if random.IntN(3) == 0 {
				clock.SetTime(clock.Now().Add(time.Duration(random.IntN(200)) * time.Second))
			}
			of := random.IntN(6)
			message := fmt.Sprint(random.IntN(5))
			if of%2 == 0 {
				message = fmt.Sprint(i)
			}
			about := corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprint("p", of%3), FieldPath: fmt.Sprint(of % 2)}
			now := metav1.NewTime(clock.Now())
			result, err := theirs.EventCorrelate(&corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprint(about.Name, ".", i)},
				InvolvedObject: about, Reason: fmt.Sprint("R", of), Message: message, Count: 1, FirstTimestamp: now,
			})
			if err != nil {
				t.Fatal(err)
			}
			one := report{at: clock.Now(), Event: Event{About: about, Reason: fmt.Sprint("R", of), Message: message}}
			wanted := ours.correlate(&one)
			if wanted == result.Skip || wanted && one.Message != result.Event.Message {
				t.Fatalf("report %d is %v %q, in Kubernetes %v %q", i, wanted, one.Message, !result.Skip,
					result.Event.Message)
			}
		}
	}
}
