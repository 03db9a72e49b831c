package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bowsprit/bowsprit/internal/part"
)

// written records the events that a recorder has written.
type written struct {
	mu   sync.Mutex
	by   map[string][]string // by object name
	turn chan struct{}       // allows one write
}

func (w *written) write(ctx context.Context, one *report, name string) string {
	select {
	case <-w.turn:
	case <-ctx.Done():
		return name
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if name == "" {
		name = fmt.Sprintf("%s.%x", one.About.Name, one.at.UnixNano())
	}
	w.by[one.About.Name] = append(w.by[one.About.Name], one.Reason+" in "+name)
	return name
}

func (w *written) lines(about string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.by[about])
}

// recorderOf returns a cluster with a recorder that writes into w, and a function that stops it.
func recorderOf(w *written) (c *Cluster, stop func() error) {
	w.by, w.turn = map[string][]string{}, make(chan struct{})
	h := &part.Host{Now: func() time.Time { return time.Unix(1, 0) }, OnStop: func(f func() error) { stop = f }}
	c = Controller(h, "test")
	c.events.write = w.write
	return c, stop
}

// TestReportsAreWrittenInOrder checks that reports do not wait for their writes, that events about an object keep their
// order, that a repeated report goes to the same event, and that other events have unique names, even at the same time.
func TestReportsAreWrittenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &written{}
		c, stop := recorderOf(w)
		a, b := corev1.ObjectReference{Name: "a"}, corev1.ObjectReference{Name: "b"}
		for _, reason := range []string{"Pulled", "Created", "Pulled"} {
			c.Normal(t.Context(), a, reason, "")
		}
		c.Normal(t.Context(), b, "Pulled", "")
		synctest.Wait()
		if len(w.lines("a"))+len(w.lines("b")) != 0 {
			t.Fatal("written before it could be")
		}
		close(w.turn)
		c.events.work.Wait()
		first, second := time.Unix(1, 0).UnixNano(), time.Unix(1, 1).UnixNano()
		want := []string{
			fmt.Sprintf("Pulled in a.%x", first), fmt.Sprintf("Created in a.%x", second),
			fmt.Sprintf("Pulled in a.%x", first),
		}
		if got := w.lines("a"); !slices.Equal(got, want) {
			t.Errorf("about a: %q, not %q", got, want)
		}
		if got := w.lines("b"); len(got) != 1 {
			t.Errorf("about b: %q", got)
		}
		c.Normal(t.Context(), b, "Killing", "") // its goroutine has ended
		c.events.work.Wait()
		if got := w.lines("b"); len(got) != 2 {
			t.Errorf("about b: %q", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestReportsHaveRoom checks that a reporter waits when the queue is full, and that the end of the server unblocks it
// and drops the queue.
func TestReportsHaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &written{}
		c, stop := recorderOf(w)
		reported := 0
		go func() {
			for range 3 * lineMost {
				// Objects of one name share a line, and each has an event budget.
				c.Normal(t.Context(), corev1.ObjectReference{Name: "a", UID: types.UID(strconv.Itoa(reported))},
					"Pulled", "")
				reported++
			}
		}()
		synctest.Wait()
		// A line is full, and its earlier content is being written.
		if reported < lineMost || reported > 2*lineMost {
			t.Fatalf("%d were reported while none was written", reported)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if reported != 3*lineMost {
			t.Errorf("who reports waits after the end, at %d", reported)
		}
		if got := w.lines("a"); len(got) != 0 {
			t.Errorf("written: %q", got)
		}
	})
}
