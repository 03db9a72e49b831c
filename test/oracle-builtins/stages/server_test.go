package stages

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/bowsprit/bowsprit/testserver"
)

// patience bounds every wait; only a failing test reaches it.
const patience = 2 * time.Minute

// server is a server with simulated workloads and a clock.
type server struct {
	*testing.T
	*kubernetes.Clientset
	dynamic dynamic.Interface
	clock   *testserver.Clock
}

func startServer(t *testing.T, folders ...string) *server {
	t.Helper()
	settings := []string{"nodes=1"}
	for i, f := range folders {
		folders[i] = filepath.Join(folder(t), filepath.FromSlash(f))
	}
	if len(folders) > 0 {
		settings = append(settings, "stages="+strings.Join(folders, string(os.PathListSeparator)))
	}
	s := &server{T: t, clock: testserver.NewClock()}
	config := testserver.Start(t, testserver.WithWorkloads(settings...), testserver.WithClock(s.clock)).RESTConfig()
	var err error
	if s.Clientset, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return s
}

// until waits for a condition, and moves the clock meanwhile.
func (s *server) until(desc string, step time.Duration, is func(context.Context) (bool, error)) {
	s.Helper()
	err := wait.PollUntilContextTimeout(s.Context(), 50*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			s.clock.Advance(step)
			return is(ctx)
		})
	if err != nil {
		s.Fatalf("%s: %v", desc, err)
	}
}

// pod makes a pod with an init container, with labels and annotations as pairs, and returns its name.
func (s *server) pod(name string, labels, annotations map[string]string) string {
	s.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "first", Image: "i"}},
			Containers:     []corev1.Container{{Name: "main", Image: "i"}},
		},
	}
	if _, err := s.CoreV1().Pods("default").Create(s.Context(), p, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	return name
}

// untilPhase waits for the phase of a pod, "" for its end.
func (s *server) untilPhase(name string, step time.Duration, phase corev1.PodPhase) {
	s.Helper()
	s.until(name+" to be "+string(phase), step, func(ctx context.Context) (bool, error) {
		list, err := s.CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil || len(list.Items) == 0 {
			return phase == "", err
		}
		return list.Items[0].Status.Phase == phase, nil
	})
}

func (s *server) untilNode(desc string, step time.Duration, is func(n *corev1.Node) bool) {
	s.Helper()
	s.until("a node "+desc, step, func(ctx context.Context) (bool, error) {
		n, err := s.CoreV1().Nodes().Get(ctx, "node-0", metav1.GetOptions{})
		return err == nil && is(n), err
	})
}

func ready(status corev1.ConditionStatus) func(n *corev1.Node) bool {
	return func(n *corev1.Node) bool {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == status
			}
		}
		return false
	}
}

func (s *server) delete(name string) {
	s.Helper()
	if err := s.CoreV1().Pods("default").Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// TestFastAndChaos checks that kwok's quick Stages, and its Stages for failing pods and nodes, work on a server, loaded
// as files.
func TestFastAndChaos(t *testing.T) {
	t.Parallel()
	s := startServer(t, "node/fast", "node/heartbeat", "node/chaos", "pod/fast", "pod/chaos")
	s.untilNode("that is ready", 0, func(n *corev1.Node) bool {
		return ready(corev1.ConditionTrue)(n) && n.Status.NodeInfo.KubeletVersion == "kwok-v0.8.0" &&
			len(n.Spec.Taints) == 0
	})
	s.untilPhase(s.pod("fine", nil, nil), 0, corev1.PodRunning)
	s.untilPhase(s.pod("doomed", map[string]string{"pod-container-running-failed.stage.kwok.x-k8s.io": "true"}, nil),
		time.Second, corev1.PodFailed)
	s.delete("fine")
	s.untilPhase("fine", 0, "")
	s.untilNode("with a later heartbeat", 30*time.Second, func(n *corev1.Node) bool {
		return n.Status.Conditions[0].LastHeartbeatTime.After(n.CreationTimestamp.Add(time.Minute))
	})
	patch := []byte(`{"metadata":{"labels":{"node-not-ready.stage.kwok.x-k8s.io":"true"}}}`)
	if _, err := s.CoreV1().Nodes().Patch(t.Context(), "node-0", "application/merge-patch+json", patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.untilNode("that is not", time.Second, ready(corev1.ConditionFalse))
}

// TestGeneralByClient lets a client create kwok's Stages for the whole life of a pod, with kwok's definition.
func TestGeneralByClient(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.apply("../crd/bases/kwok.x-k8s.io_stages.yaml")
	s.until("the definition to be served", 0, func(ctx context.Context) (bool, error) {
		_, err := s.dynamic.Resource(stagesResource).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	for _, name := range []string{
		"complete", "create", "delete", "init-container-completed", "init-container-running", "ready",
	} {
		s.apply("pod/general/pod-" + name + ".yaml")
	}
	s.apply("pod/chaos/pod-init-container-running-failed.yaml")
	s.until("all to be accepted", 0, func(ctx context.Context) (bool, error) {
		list, err := s.dynamic.Resource(stagesResource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, one := range list.Items {
			c, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions")
			if len(c) != 1 || c[0].(map[string]any)["status"] != "True" {
				return false, nil
			}
		}
		return len(list.Items) == 7, nil
	})
	name := s.pod("one", nil, map[string]string{"pod-ready.stage.kwok.x-k8s.io/jitter-delay": "3s"})
	s.untilPhase(name, time.Second, corev1.PodRunning)
	p, err := s.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || p.Status.InitContainerStatuses[0].State.Terminated == nil || p.Status.PodIP == "" ||
		p.Status.ContainerStatuses[0].State.Running == nil {
		t.Errorf("a pod that runs: %+v, %v", p.Status, err)
	}
	doomed := map[string]string{"pod-init-container-running-failed.stage.kwok.x-k8s.io": "true"}
	s.untilPhase(s.pod("doomed", doomed, nil), time.Second, corev1.PodFailed)
	s.delete(name)
	s.untilPhase(name, time.Second, "")
}

var stagesResource = schema.GroupVersionResource{Group: "kwok.x-k8s.io", Version: "v1alpha1", Resource: "stages"}

// apply creates the object of one of kwok's files.
func (s *server) apply(file string) {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(folder(s.T), filepath.FromSlash(file)))
	if err != nil {
		s.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &u.Object); err != nil {
		s.Fatal(err)
	}
	gvr := stagesResource
	if u.GetKind() != "Stage" {
		gvr = schema.GroupVersionResource{
			Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
		}
	}
	if _, err := s.dynamic.Resource(gvr).Create(s.Context(), u, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}
