package podlog_test

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/testing/controltest"
	"github.com/bowsprit/bowsprit/testserver"
)

// site is a server with one simulated node and a clock.
type site struct {
	*testing.T
	clock  *testserver.Clock
	client *kubernetes.Clientset
	config *rest.Config
}

func start(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	clock := testserver.NewClock()
	config := testserver.Start(t, testserver.WithWorkloads(), testserver.WithClock(clock)).RESTConfig()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &site{t, clock, client, config}
}

// create creates a pod with annotations, keys and values, and waits until it is in a state.
func (s *site) create(name string, is func(*corev1.Pod) bool, annotations ...string) {
	s.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/app:1"}}},
	}
	for i := 0; i < len(annotations); i += 2 {
		p.Annotations[annotations[i]] = annotations[i+1]
	}
	made, err := s.client.CoreV1().Pods("default").Create(s.Context(), p, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.until(made, is)
}

func (s *site) until(p *corev1.Pod, is func(*corev1.Pod) bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), controltest.Patience)
	defer cancel()
	w, err := s.client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + p.Name, ResourceVersion: p.ResourceVersion,
	})
	if err != nil {
		s.Fatal(err)
	}
	defer w.Stop()
	last := p
	for ev := range w.ResultChan() {
		if ev.Type == watch.Error {
			s.Fatalf("watch: %v", ev.Object)
		}
		if last = ev.Object.(*corev1.Pod); is(last) {
			return
		}
	}
	s.Fatalf("%s does not get there: %+v", p.Name, last.Status)
}

func running(p *corev1.Pod) bool {
	return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Running != nil
}

func waitsBecause(reason string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			p.Status.ContainerStatuses[0].State.Waiting.Reason == reason
	}
}

// log returns the log of a pod, or the error.
func (s *site) log(pod string, o corev1.PodLogOptions) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), controltest.Patience)
	defer cancel()
	stream, err := s.client.CoreV1().Pods("default").GetLogs(pod, &o).Stream(ctx)
	if err != nil {
		return err.Error()
	}
	defer stream.Close()
	raw, err := io.ReadAll(stream)
	if err != nil {
		s.Error(err)
	}
	return string(raw)
}

// TestLogs checks that logs have the lines of annotations, with clients' options applied, and the errors of containers
// without a log.
func TestLogs(t *testing.T) {
	s := start(t)
	s.create("web", running, "bowsprit.dev/simulate-logs", "one\ntwo\nthree\n+1h later\n")
	number := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		options corev1.PodLogOptions
		want    string
	}{
		{corev1.PodLogOptions{}, "one\ntwo\nthree\n"},
		{corev1.PodLogOptions{Container: "main", TailLines: number(1)}, "three\n"},
		{corev1.PodLogOptions{LimitBytes: number(5)}, "one\nt"},
		{corev1.PodLogOptions{Follow: true, LimitBytes: number(5)}, "one\nt"},
		{corev1.PodLogOptions{Previous: true}, `previous terminated container "main" in pod "web" not found`},
		{corev1.PodLogOptions{Container: "other"}, `container other is not valid for pod web`},
	} {
		if got := s.log("web", c.options); got != c.want {
			t.Errorf("%+v: %q, want %q", c.options, got, c.want)
		}
	}
	s.clock.Advance(2 * time.Hour)
	if got := s.log("web", corev1.PodLogOptions{SinceSeconds: number(3700)}); got != "later\n" {
		t.Errorf("of the last hour: %q", got)
	}
	stamped := s.log("web", corev1.PodLogOptions{Timestamps: true, TailLines: number(1)})
	stamp, rest, _ := strings.Cut(stamped, " ")
	if _, err := time.Parse(time.RFC3339Nano, stamp); err != nil || rest != "later\n" {
		t.Errorf("with its time: %q, %v", stamped, err)
	}
	s.create("slow", waitsBecause("ContainerCreating"), "bowsprit.dev/simulate-start-delay", "1000h")
	want := `container "main" in pod "slow" is waiting to start: ContainerCreating`
	if got := s.log("slow", corev1.PodLogOptions{}); got != want {
		t.Errorf("a container that has not started: %q", got)
	}
	s.create("crash", waitsBecause("CrashLoopBackOff"), "bowsprit.dev/simulate-exit-code", "1",
		"bowsprit.dev/simulate-logs", "it broke")
	for _, previous := range []bool{false, true} {
		if got := s.log("crash", corev1.PodLogOptions{Previous: previous}); got != "it broke\n" {
			t.Errorf("previous %v: %q", previous, got)
		}
	}
}

// TestFollow checks that a follower of a log gets lines when the clock advances and when the annotation grows, and that
// the log ends when the container does.
func TestFollow(t *testing.T) {
	s := start(t)
	pods := s.client.CoreV1().Pods("default")
	s.create("web", running, "bowsprit.dev/simulate-logs", "one\n+1h later\n")
	ctx, cancel := context.WithTimeout(t.Context(), controltest.Patience)
	defer cancel()
	stream, err := pods.GetLogs("web", &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	lines := bufio.NewReader(stream)
	next := func(want string) {
		t.Helper()
		if got, err := lines.ReadString('\n'); err != nil || got != want+"\n" {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	}
	next("one")
	s.clock.Advance(2 * time.Hour)
	next("later")
	more := []byte(`{"metadata":{"annotations":{"bowsprit.dev/simulate-logs":"one\n+1h later\nmore"}}}`)
	if _, err := pods.Patch(ctx, "web", "application/merge-patch+json", more, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	next("more")
	if err := pods.Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("at the end: %q, %v", rest, err)
	}
}

// TestUnreachable checks that a node with an outage does not answer, and that other nodes answer only logs.
func TestUnreachable(t *testing.T) {
	s := start(t)
	s.create("web", running)
	raw, err := s.client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/node-0/proxy/healthz").DoRaw(t.Context())
	if err == nil || !strings.Contains(string(raw), "node node-0 is simulated: it runs no containers") {
		t.Errorf("%s, %v", raw, err)
	}
	down := []byte(`{"metadata":{"annotations":{"bowsprit.dev/simulate-down":"true"}}}`)
	if _, err := s.client.CoreV1().Nodes().Patch(t.Context(), "node-0", "application/merge-patch+json", down,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := s.log("web", corev1.PodLogOptions{}); !strings.Contains(got, ":10250: i/o timeout") {
		t.Errorf("of a node that is down: %q", got)
	}
}
