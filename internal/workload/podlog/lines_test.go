package podlog

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func at(d time.Duration) metav1.Time { return metav1.Time{Time: start.Add(d)} }

func running() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(0)}}
}

func terminated(id string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ContainerID: id, StartedAt: at(0), FinishedAt: at(time.Minute),
	}}
}

func waiting(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

// TestRunOf checks which run is read, and the kubelet's error if there is none.
func TestRunOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		state, last corev1.ContainerState
		previous    bool
		id, fail    string
	}{
		{name: "running", state: running(), id: "now"},
		{name: "ended", state: terminated("now"), id: "now"},
		{name: "ended, without an id", state: terminated(""), last: terminated("before"), id: "before"},
		{name: "never started", state: terminated(""), fail: `container "main" in pod "web" is terminated`},
		{name: "restarting", state: waiting("CrashLoopBackOff"), last: terminated("before"), id: "before"},
		{name: "previous", state: running(), last: terminated("before"), previous: true, id: "before"},
		{
			name: "no previous", state: running(), previous: true,
			fail: `previous terminated container "main" in pod "web" not found`,
		},
		{
			name: "creating", state: waiting("ContainerCreating"),
			fail: `container "main" in pod "web" is waiting to start: ContainerCreating`,
		},
		{
			name: "pulling", state: waiting("ErrImagePull"),
			fail: `container "main" in pod "web" is waiting to start: image can't be pulled`,
		},
		{
			name: "pulling no more", state: waiting("ImagePullBackOff"),
			fail: `container "main" in pod "web" is waiting to start: trying and failing to pull image`,
		},
		{name: "nothing", fail: `container "main" in pod "web" is waiting to start - no logs yet`},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "main", ContainerID: "now", State: c.state, LastTerminationState: c.last},
		}
		r, err := runOf(pod, "main", c.previous)
		if r.id != c.id || (err == nil) != (c.fail == "") || err != nil && err.Error() != c.fail {
			t.Errorf("%s: %q, %v; want %q, %q", c.name, r.id, err, c.id, c.fail)
		}
	}
	if _, err := runOf(&corev1.Pod{}, "main", false); err == nil ||
		err.Error() != `container "main" in pod "" is not available` {
		t.Errorf("without a status: %v", err)
	}
}

// TestWritten checks that lines appear at their time while the container runs, and that the annotation for a container
// takes precedence over the one for all.
func TestWritten(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		logs: "a\n+5s b\n+3s c\nd\n+1h e\n", logsOf + "proxy": "+x y\n+2s ",
	}}}
	for _, c := range []struct {
		container  string
		now, ended time.Duration
		want       string
		next       time.Duration
	}{
		{"main", 0, 0, "0s a", 5 * time.Second},
		{"main", 4 * time.Second, 0, "0s a", time.Second},
		{"main", 5 * time.Second, 0, "0s a|5s b|5s c|5s d", time.Hour - 5*time.Second},
		{"main", 2 * time.Hour, 0, "0s a|5s b|5s c|5s d|1h0m0s e", 0},
		{"main", 2 * time.Hour, time.Second, "0s a", 0},
		{"proxy", time.Minute, 0, "0s +x y|2s ", 0},
	} {
		r := run{started: start}
		if c.ended > 0 {
			r.ended = start.Add(c.ended)
		}
		lines, next := written(pod, c.container, r, start.Add(c.now))
		var got []string
		for _, l := range lines {
			got = append(got, l.at.Sub(start).String()+" "+l.text)
		}
		if strings.Join(got, "|") != c.want || next != c.next {
			t.Errorf("%s at %s: %q, then in %s; want %q, %s", c.container, c.now, got, next, c.want, c.next)
		}
	}
}

func TestWanted(t *testing.T) {
	t.Parallel()
	var all []line
	for i := range 5 {
		all = append(all, line{start.Add(time.Duration(i) * time.Second), string(rune('a' + i))})
	}
	number := func(n int64) *int64 { return &n }
	since := at(3 * time.Second)
	for _, c := range []struct {
		options corev1.PodLogOptions
		want    string
	}{
		{corev1.PodLogOptions{}, "abcde"},
		{corev1.PodLogOptions{TailLines: number(2)}, "de"},
		{corev1.PodLogOptions{TailLines: number(0)}, ""},
		{corev1.PodLogOptions{TailLines: number(9)}, "abcde"},
		{corev1.PodLogOptions{SinceTime: &since}, "de"},
		{corev1.PodLogOptions{SinceSeconds: number(6), TailLines: number(4)}, "e"},
	} {
		got := ""
		for _, l := range wanted(all, &c.options, start.Add(10*time.Second)) {
			got += l.text
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.options, got, c.want)
		}
	}
}
