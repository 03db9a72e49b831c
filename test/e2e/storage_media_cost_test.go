package e2e

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// TestStorageMediaTypeCost compares servers that store pods as protobuf, compressed, and as JSON: CPU time for
// creations and for patches, the size of the database, and the CPU time of a start that reads them. They run in turns.
// E2E_STORAGE_MEDIA_COST is the number of turns; without it the test is skipped, because it is a benchmark.
func TestStorageMediaTypeCost(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("E2E_STORAGE_MEDIA_COST"))
	if err != nil {
		t.Skip("it measures for minutes: E2E_STORAGE_MEDIA_COST says in how many turns")
	}
	const pods = 1500
	medias := []string{
		"application/json", "application/vnd.kubernetes.protobuf", "application/vnd.bowsprit.compressed+json",
	}
	servers, dirs := make([]*process, len(medias)), make([]string, len(medias))
	took := map[string][][]float64{"create": make([][]float64, len(medias)), "patch": make([][]float64, len(medias))}
	for i, media := range medias {
		dirs[i] = t.TempDir()
		servers[i] = startServer(t, "--data-dir="+dirs[i], "--storage-media-type="+media)
	}
	for round := range rounds + 1 { // the first one warms up
		for _, work := range []string{"create", "patch"} {
			for i, p := range servers {
				took[work][i] = append(took[work][i], podCost(t, p, work, round, pods))
			}
		}
	}
	for i, media := range medias {
		for work, all := range took {
			one := all[i][1:]
			slices.Sort(one)
			t.Logf("%-36s %-6s %5.0f us of CPU each, %.0f to %.0f", media, work, one[len(one)/2], one[0], one[len(one)-1])
		}
		metrics := string(kubectl(t, servers[i], nil, "get", "--raw", "/metrics"))
		size := regexp.MustCompile(`(?m)^apiserver_storage_size_bytes.*`).FindString(metrics)
		servers[i].stop(t)
		again := startServer(t, "--data-dir="+dirs[i], "--storage-media-type="+media)
		t.Logf("%-36s %s; a start that reads %d pods takes %v and %d0 ms of CPU", media, size, pods*(rounds+1), again.ready,
			cpuTime(t, again.cmd.Process.Pid))
	}
}

// podCost has clients work on so many pods and returns the microseconds of CPU that the server took for one.
func podCost(t *testing.T, p *process, work string, round, n int) float64 {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(p.config(t)).CoreV1().Pods("default")
	before := cpuTime(t, p.cmd.Process.Pid)
	todo := make(chan string)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for name := range todo {
				var err error
				if work == "create" {
					_, err = client.Create(t.Context(), costPod(name), metav1.CreateOptions{})
				} else {
					_, err = client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`),
						metav1.PatchOptions{})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		todo <- fmt.Sprintf("pod-%d-%d", round, i)
	}
	close(todo)
	workers.Wait()
	return float64(cpuTime(t, p.cmd.Process.Pid)-before) * 1e4 / float64(n)
}

func costPod(name string) *corev1.Pod {
	labels := map[string]string{"app": "web", "pod-template-hash": "5d9c5f7b6c"}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "web", Image: "nginx:1.29", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
			Env: []corev1.EnvVar{{Name: "MODE", Value: "production"}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi"),
			}},
		}}},
	}
}
