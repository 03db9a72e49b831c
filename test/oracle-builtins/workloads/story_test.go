package workloads

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
)

// patience bounds every story; only a failing test reaches it. STORIES_PATIENCE shortens it for a search for
// differences.
func patience() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("STORIES_PATIENCE")); err == nil {
		return d
	}
	return 3 * time.Minute
}

// twoNodes is the setting of most stories.
const twoNodes = "nodes=2"

// quiet is how long both servers must have the same before it counts.
const quiet = 250 * time.Millisecond

// TestControllersAgree runs each story of testdata on a server with its own controllers and on one with
// kube-controller-manager's, and compares the final objects, the events, and the order in which pods of StatefulSets
// appeared and disappeared. A file is one story, or several that begin with "== NAME". verbs_test.go describes the
// verbs.
//
// STORIES is a regular expression for the names of the stories to run. The default is all stories with a file of their
// own and one in four of the others, since all of them take minutes (make stories).
func TestControllersAgree(t *testing.T) {
	all := stories(t)
	pair := newPair(t, twoNodes)
	runAll(t, pair, all)
	t.Logf("%d stories", len(all))
}

// named is the lines of a story.
type named struct {
	name  string
	lines []string
}

// sampled is the number of stories in a file for each one that runs by default.
const sampled = 4

func stories(t *testing.T) []named {
	t.Helper()
	only, every := os.Getenv("STORIES"), 1
	if only == "" {
		every = sampled
	}
	return storiesIn(t, "testdata/*.txt", only, every)
}

// storiesIn returns the stories of files with names that match only. every is the interval in files with several
// stories.
func storiesIn(t *testing.T, in, only string, every int) (all []named) {
	t.Helper()
	matches := regexp.MustCompile(only)
	files, err := filepath.Glob(in)
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), ".txt"), "_", "-")
		parts := strings.Split("\n"+string(text), "\n== ")
		if len(parts) == 1 {
			all = append(all, named{name, strings.Split(parts[0], "\n")})
			continue
		}
		for i, part := range parts[1:] {
			lines := strings.Split(part, "\n")
			if i%every == 0 {
				all = append(all, named{fmt.Sprintf("%s-%02d %s", name, i+1, lines[0]), lines[1:]})
			}
		}
	}
	return slices.DeleteFunc(all, func(s named) bool { return !matches.MatchString(s.name) })
}

// TestZonesAgree runs stories about three nodes in two zones, in which the nodes of pods matter.
func TestZonesAgree(t *testing.T) {
	only := os.Getenv("STORIES")
	for _, s := range storiesIn(t, "testdata/zones/*.txt", only, 1) {
		t.Run(s.name, func(t *testing.T) {
			pair := newPair(t, "nodes=3 zones=2")
			for _, on := range pair {
				on.places = true
			}
			runAll(t, pair, []named{s})
		})
	}
}

// TestNodesAgree runs stories about nodes that clients make and that the server does not simulate. Their names are the
// story's name and a suffix.
func TestNodesAgree(t *testing.T) {
	ours, theirs := startServer(t, twoNodes), startServer(t, twoNodes, append(replacedOnNodes, replaced...)...)
	startControllers(t, theirs)
	startNodeControllers(t, theirs)
	runAll(t, sides(t, ours, theirs), storiesIn(t, "testdata/nodes/*.txt", os.Getenv("STORIES"), 1))
}

// TestGatesAgree runs stories about features that no release has on by default.
func TestGatesAgree(t *testing.T) {
	gate := features.StatefulSetRecreateStrategy
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, gate, true)
	open := map[string]bool{string(gate): true}
	ours, theirs := startWithGates(t, twoNodes, open), startWithGates(t, twoNodes, open, replaced...)
	startControllers(t, theirs)
	runAll(t, sides(t, ours, theirs), storiesIn(t, "testdata/gates/*.txt", os.Getenv("STORIES"), 1))
}

// newPair returns a server with our controllers and one with Kubernetes'.
func newPair(t *testing.T, nodes string) []*side {
	t.Helper()
	ours, theirs := startServer(t, nodes), startServer(t, nodes, replaced...)
	startControllers(t, theirs)
	makeClasses(t, ours, theirs)
	return sides(t, ours, theirs)
}

func sides(t *testing.T, ours, theirs *rest.Config) []*side {
	t.Helper()
	return []*side{newSide(t, "our controllers", ours), newSide(t, "Kubernetes' controllers", theirs)}
}

// story is a story that runs on two servers.
type story struct {
	namespace string
	sides     []*side // ours, theirs
	// skip selects the results that are no longer compared.
	skip leeway
	// seen holds the states of the last comparison, and the time since they have been equal.
	seen struct {
		changes []int
		same    bool
		since   time.Time
		states  []string
	}
}

// run runs the lines, and returns the differences.
func (s *story) run(ctx context.Context, lines []string) (err error) {
	namespaces := kinds["pods"]
	namespaces.Resource = "namespaces"
	defer func() {
		err = errors.Join(err, s.each("end", func(on *side) error { return s.end(ctx, on, namespaces) }))
	}()
	if err := s.each("namespace", func(on *side) error {
		_, err := on.client.Resource(namespaces).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": s.namespace},
		}}, metav1.CreateOptions{})
		return err
	}); err != nil {
		return err
	}
	for i := 0; i < len(lines); i++ {
		line := strings.NewReplacer("$NAMESPACE", s.namespace,
			"$NOW", fmt.Sprintf("%q", time.Now().UTC().Format(time.RFC3339))).Replace(lines[i])
		if line == "" || line[0] == '#' {
			continue
		}
		if line == "apply" {
			var text []string
			for i++; i < len(lines) && lines[i] != ""; i++ {
				text = append(text, lines[i])
			}
			err = s.each(line, func(on *side) error { return s.apply(ctx, on, strings.Join(text, "\n")) })
		} else {
			err = s.execute(ctx, line)
		}
		if err != nil {
			return err
		}
	}
	if err := s.same(ctx); err != nil {
		return err
	}
	ours, theirs := s.sides[0].history(s.namespace), s.sides[1].history(s.namespace)
	if ours != theirs {
		return fmt.Errorf("pods came and went otherwise: ours +, Kubernetes' -:\n%s", cmp.Diff(theirs, ours))
	}
	return nil
}

// end deletes the objects of a story, also after its time is over, because it may be repeated.
func (s *story) end(ctx context.Context, on *side, namespaces schema.GroupVersionResource) error {
	ctx = context.WithoutCancel(ctx)
	err := on.client.Resource(kinds["persistentvolumes"]).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "story=" + s.namespace})
	err = errors.Join(err, on.client.Resource(kinds["nodes"]).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "story=" + s.namespace}))
	return errors.Join(err, on.client.Resource(namespaces).Delete(ctx, s.namespace, metav1.DeleteOptions{}))
}

// execute runs a line on both servers.
func (s *story) execute(ctx context.Context, line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	about, rest, _ := strings.Cut(rest, " ")
	if verb == "same" {
		return s.same(ctx)
	}
	do := verbs[verb]
	if do == nil {
		return fmt.Errorf("%q is no line of a story", line)
	}
	s.skip.see(line)
	return s.each(line, func(on *side) error { return do(s.target(on, about), ctx, rest) })
}

// each calls do for both servers at the same time.
func (s *story) each(line string, do func(*side) error) error {
	errs := make([]error, len(s.sides))
	var wg sync.WaitGroup
	for i, on := range s.sides {
		wg.Go(func() {
			if err := do(on); err != nil {
				errs[i] = fmt.Errorf("%s: %s: %w", on.name, line, err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w; ours +, Kubernetes' -:\n%s", err, s.diff())
	}
	return nil
}

// same waits until both servers have the same objects, and keep them: controllers may still react to the last line.
func (s *story) same(ctx context.Context) error {
	if err := poll(ctx, func() (bool, error) { return s.settled() }); err != nil {
		return fmt.Errorf("%w: ours +, Kubernetes' -:\n%s", err, s.diff())
	}
	return nil
}

// settled reports whether both servers have the same and have not changed for a while.
func (s *story) settled() (bool, error) {
	changed := s.seen.changes == nil
	var now []int
	for i, on := range s.sides {
		now = append(now, on.changed(s.namespace))
		changed = changed || now[i] != s.seen.changes[i]
	}
	if !changed {
		return s.seen.same && time.Since(s.seen.since) >= quiet, nil
	}
	s.seen.changes, s.seen.since = now, time.Now()
	s.seen.states = make([]string, len(s.sides))
	for i, on := range s.sides {
		var err error
		if s.seen.states[i], err = state(on, s.namespace, s.skip); err != nil {
			return false, err
		}
	}
	s.seen.same = s.seen.states[0] == s.seen.states[1]
	return false, nil
}

func (s *story) diff() string {
	var states [][]string
	for _, on := range s.sides {
		text, err := state(on, s.namespace, s.skip)
		if err != nil {
			return fmt.Sprintf("%s: %v", on.name, err)
		}
		states = append(states, strings.Split(text, "\n"))
	}
	return cmp.Diff(states[1], states[0])
}
