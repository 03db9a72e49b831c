package node

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// counting is a pod that logs the next number each second.
const counting = `
apiVersion: v1
kind: Pod
metadata: {name: counting}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10
    command: [sh, -c, "i=0; while :; do echo $i; i=$((i+1)); sleep 1; done"]
`

// follower follows the log of the pod counting by a connection of its own, like a kubectl process.
type follower struct {
	lines chan int // closed at the end
	err   error    // the reason for its end; set before lines is closed
}

// followers are many followers.
type followers struct {
	all   []*follower
	leave context.CancelFunc
	ended sync.WaitGroup
}

// follow starts so many followers. The caller calls end.
func (n *realNode) follow(t *testing.T, count int) *followers {
	t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	f := &followers{leave: leave}
	for range count {
		config := n.config(t)
		config.Dial = (&net.Dialer{}).DialContext // client-go shares connections between equal configurations
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		one := &follower{lines: make(chan int, 10_000)} // longer than any test, so that no follower blocks
		f.all = append(f.all, one)
		f.ended.Go(func() {
			defer close(one.lines)
			defer utilnet.CloseIdleConnectionsFor(client.RESTClient().(*rest.RESTClient).Client.Transport)
			one.err = one.read(ctx, client)
		})
	}
	return f
}

// read forwards the numbers of the log, and returns the reason for its end.
func (f *follower) read(ctx context.Context, client *kubernetes.Clientset) error {
	log, err := client.CoreV1().Pods("default").GetLogs("counting", &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	lines := bufio.NewScanner(log)
	for want := 0; lines.Scan(); want++ {
		got, err := strconv.Atoi(lines.Text())
		if err != nil || got != want {
			return fmt.Errorf("the log has %q where %d belongs", lines.Text(), want)
		}
		f.lines <- got
	}
	return lines.Err()
}

// awaitBeyond waits until every follower has read a number above the given one.
func (f *followers) awaitBeyond(t *testing.T, number int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for i, one := range f.all {
		for got := -1; got <= number; {
			var open bool
			select {
			case got, open = <-one.lines:
				if !open {
					t.Fatalf("follower %d has ended: %v", i, one.err)
				}
			case <-ctx.Done():
				t.Fatalf("follower %d has no line after %d", i, number)
			}
		}
	}
}

// end stops the followers, and waits for them.
func (f *followers) end() {
	f.leave()
	f.ended.Wait()
}

// lastNumber returns the last number in the log of the pod counting.
func (n *realNode) lastNumber(t *testing.T) int {
	t.Helper()
	number, err := strconv.Atoi(n.sh(t, "kubectl logs counting --tail=1"))
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// followed returns the number of logs that the kubelet is sending, from its metrics.
func (n *realNode) followed(t *testing.T) string {
	t.Helper()
	return n.sh(t, "kubectl get --raw /api/v1/nodes/one/proxy/metrics | "+
		`sed -n 's/^kubelet_http_inflight_requests{.*path="containerLogs".* //p'`)
}

// awaitFollowed waits until the kubelet sends so many logs.
func (n *realNode) awaitFollowed(t *testing.T, want int) {
	t.Helper()
	await(t, func(context.Context) string {
		if got := n.followed(t); got != strconv.Itoa(want) && (want > 0 || got != "") {
			return fmt.Sprintf("the kubelet sends %s logs, want %d", got, want)
		}
		return ""
	})
}

// usage counts a server's resources that could leak.
type usage struct {
	goroutines, heap, resident int // heap and resident in KiB
}

var (
	goroutineTotal = regexp.MustCompile(`goroutine profile: total (\d+)`)
	heapAlloc      = regexp.MustCompile(`# HeapAlloc = (\d+)`)
	residentSet    = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)
)

func (n *realNode) usage(t *testing.T) (u usage) {
	t.Helper()
	find := func(from *regexp.Regexp, text string) int {
		found := from.FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("no %s in %.1000s", from, text)
		}
		number, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	u.goroutines = find(goroutineTotal, n.sh(t, "kubectl get --raw '/debug/pprof/goroutine?debug=1'"))
	u.heap = find(heapAlloc, n.sh(t, "kubectl get --raw '/debug/pprof/heap?debug=1&gc=1'")) / 1024
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	u.resident = find(residentSet, string(status))
	return u
}

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %.1f MiB of live heap, %.1f MiB resident", u.goroutines, float64(u.heap)/1024,
		float64(u.resident)/1024)
}

// awaitReturn waits until the server's usage is back at its earlier level, except for idle connections, which stay open
// for a while.
func (n *realNode) awaitReturn(t *testing.T, before usage) {
	t.Helper()
	await(t, func(context.Context) string {
		if now := n.usage(t); now.goroutines > before.goroutines+10 || now.heap > before.heap+4<<10 {
			return fmt.Sprintf("the server has %v, had %v; %s", now, before, strings.Join(n.stacks(t), "\n"))
		}
		return ""
	})
}

// stacks returns the beginnings of the most frequent stacks of the server.
func (n *realNode) stacks(t *testing.T) []string {
	t.Helper()
	all := strings.Split(n.sh(t, "kubectl get --raw '/debug/pprof/goroutine?debug=1'"), "\n\n")
	return all[:min(len(all), 8)]
}
