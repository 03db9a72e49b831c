package kubelet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
	"unsafe"

	cadvisor "github.com/google/cadvisor/lib/model"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	critest "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/klog/v2"
	real "k8s.io/kubernetes/pkg/kubelet"
	"k8s.io/kubernetes/pkg/kubelet/allocation/state"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	containertest "k8s.io/kubernetes/pkg/kubelet/container/testing"
	"k8s.io/kubernetes/pkg/kubelet/kuberuntime"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/logs"
	"k8s.io/kubernetes/pkg/kubelet/prober"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
	"k8s.io/kubernetes/pkg/kubelet/status"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

//go:linkname generateAPIPodStatus k8s.io/kubernetes/pkg/kubelet.(*Kubelet).generateAPIPodStatus
func generateAPIPodStatus(
	kl *real.Kubelet, ctx context.Context, pod *corev1.Pod, s *kubecontainer.PodStatus, terminal bool,
) corev1.PodStatus

//go:linkname mergePodStatus k8s.io/kubernetes/pkg/kubelet/status.mergePodStatus
func mergePodStatus(pod *corev1.Pod, old, now corev1.PodStatus, couldHaveRunningContainers bool) corev1.PodStatus

//go:linkname makeEnvironmentVariables k8s.io/kubernetes/pkg/kubelet.(*Kubelet).makeEnvironmentVariables
func makeEnvironmentVariables(
	kl *real.Kubelet, ctx context.Context, pod *corev1.Pod, c *corev1.Container, ip string, ips []string,
	volumes kubecontainer.VolumeMap,
) ([]kubecontainer.EnvVar, error)

// kubelet is a kubelet for one pod, with a fake container runtime.
type kubelet struct {
	*real.Kubelet
	runtime  kuberuntime.KubeGenericRuntime
	cri      *runtimeService
	statuses status.Manager
	reasons  *real.ReasonCache
	backOff  *flowcontrol.Backoff
	probes   map[string]results.Manager
	client   kubernetes.Interface
	pod      *corev1.Pod // as the API server has it
	runs     runs
	objects  *objects
	mounted  bool
	done     bool
}

var logger = klog.Background()

// runs are the ends of a container's runs.
type runs map[string]run

// run is how each run of a container ends: with a code after a time; never if after is 0, at once if it is less.
type run struct {
	after time.Duration
	code  int32
}

// newKubelet returns the kubelet of a pod.
func newKubelet(t *testing.T, pod *corev1.Pod, r runs, o *objects) *kubelet {
	t.Helper()
	ctx := t.Context()
	k := &kubelet{
		Kubelet: &real.Kubelet{}, pod: pod, runs: r, objects: o, reasons: real.NewReasonCache(),
		cri:     &runtimeService{FakeRuntimeService: critest.NewFakeRuntimeService(), runs: r},
		backOff: flowcontrol.NewBackOff(10*time.Second, 5*time.Minute),
		probes: map[string]results.Manager{
			"liveness": results.NewManager(), "readiness": results.NewManager(), "startup": results.NewManager(),
		},
	}
	recorder := &record.FakeRecorder{}
	images := critest.NewFakeImageService()
	images.SetFakeImages([]string{"i:1", "j:1"})
	machine := cm.NewFakeContainerManager(klog.FromContext(ctx))
	one, throttling := int32(1), 0.9
	runtime, _, err := kuberuntime.NewKubeGenericRuntimeManager(ctx, recorder, k.probes["liveness"],
		k.probes["readiness"], k.probes["startup"], t.TempDir(), t.TempDir(),
		&cadvisor.MachineInfo{MemoryCapacity: 1 << 36}, k, 110,
		&containertest.FakeOS{}, &helper{FakeRuntimeHelper: &containertest.FakeRuntimeHelper{}, kubelet: k}, nil,
		flowcontrol.NewBackOff(time.Second, time.Minute), false, &one, 0, 0, "NeverVerify", nil, "", "", nil, false,
		metav1.Duration{Duration: 100 * time.Millisecond}, nil, k.cri, images, machine,
		logs.NewStubContainerLogManager(), nil, false, "", func() corev1.ResourceList { return nil }, &throttling, "",
		pulls{}, noop.NewTracerProvider(), nil, nil, pulls{})
	if err != nil {
		t.Fatal(err)
	}
	setField(runtime, "actuatedState", state.NewStateMemory(klog.FromContext(ctx), nil))
	k.runtime = runtime
	k.client = fake.NewClientset()
	k.statuses = status.NewManager(k.client, podManager{k}, k, pulls{})
	setField(k.Kubelet, "statusManager", k.statuses)
	setField(k.Kubelet, "probeManager", &probeManager{
		Manager: prober.NewManager(k.statuses, k.probes["liveness"], k.probes["readiness"], k.probes["startup"],
			runtime, recorder),
		kubelet: k,
	})
	setField(k.Kubelet, "containerManager", machine)
	setField(k.Kubelet, "containerRuntime", runtime)
	setField(k.Kubelet, "reasonCache", k.reasons)
	setField(k.Kubelet, "recorder", recorder)
	setField(k.Kubelet, "serviceHasSynced", func() bool { return true })
	setField(k.Kubelet, "serviceLister", services{})
	setField(k.Kubelet, "configMapManager", o)
	setField(k.Kubelet, "secretManager", secretManager{o})
	k.AddPodSyncHandler(k)
	return k
}

// setField sets a private field of a struct.
func setField(of any, name string, value any) {
	f := reflect.ValueOf(of).Elem().FieldByName(name)
	f = reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
	if value == nil {
		f.SetZero()
		return
	}
	f.Set(reflect.ValueOf(value))
}

// settle syncs the pod until nothing changes at the present time.
func (k *kubelet) settle(t *testing.T) {
	t.Helper()
	quiet := 0 // a sync shows the failures of the one before
	for range 100 {
		before := k.pod.Status.DeepCopy()
		calls := len(k.cri.Called)
		k.cri.expire(time.Now())
		k.sync(t)
		if quiet++; !equalStatus(before, &k.pod.Status) || k.cri.changedSince(calls) {
			quiet = 0
		}
		if k.done || quiet == 2 {
			return
		}
	}
	t.Fatalf("the kubelet never rests: %v\n%+v", k.cri.Called[max(0, len(k.cri.Called)-40):], k.pod.Status)
}

// sync is one sync of the pod worker. Source of its order: Kubelet.SyncPod, SyncTerminatingPod and SyncTerminatedPod.
func (k *kubelet) sync(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	seen := k.podStatus(t)
	k.backOff.GC()
	late := k.ShouldEvict(k.pod).Evict
	if k.pod.DeletionTimestamp != nil || late {
		k.terminate(t, seen, late)
		return
	}
	s := generateAPIPodStatus(k.Kubelet, ctx, k.pod, seen, false)
	k.publish(s, false)
	if s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed {
		k.terminate(t, seen, false)
		return
	}
	if !k.mounted {
		if k.mounted = k.objects.mount(k.pod); !k.mounted {
			return
		}
	}
	k.runtime.InitializeActuatedPod(logger, k.pod)
	resets := false
	for _, c := range s.Conditions {
		resets = resets || c.Type == corev1.AllContainersRestarting && c.Status == corev1.ConditionTrue
	}
	result := k.runtime.SyncPod(ctx, k.pod, seen, nil, k.backOff, resets)
	k.reasons.Update(k.pod.UID, result)
	k.probe()
}

// ShouldEvict is the kubelet's check of the pod's deadline.
func (k *kubelet) ShouldEvict(pod *corev1.Pod) lifecycle.ShouldEvictResponse {
	most := pod.Spec.ActiveDeadlineSeconds
	if most == nil || pod.Status.StartTime == nil ||
		time.Since(pod.Status.StartTime.Time) < time.Duration(*most)*time.Second {
		return lifecycle.ShouldEvictResponse{}
	}
	return lifecycle.ShouldEvictResponse{
		Evict: true, Reason: "DeadlineExceeded",
		Message: "Pod was active on the node longer than the specified deadline",
	}
}

// terminate ends the pod.
func (k *kubelet) terminate(t *testing.T, seen *kubecontainer.PodStatus, late bool) {
	t.Helper()
	ctx := t.Context()
	k.cri.late = late
	running := kubecontainer.ConvertPodStatusToRunningPod("fakeRuntime", seen)
	if err := k.runtime.KillPod(ctx, k.pod, running, k.pod.DeletionGracePeriodSeconds); err != nil {
		t.Fatal(err)
	}
	stopped := k.podStatus(t)
	s := generateAPIPodStatus(k.Kubelet, ctx, k.pod, stopped, true)
	k.publish(s, false)
	k.statuses.TerminatePod(logger, k.pod)
	final, _ := k.statuses.GetPodStatus(k.pod.UID)
	k.pod.Status = mergePodStatus(k.pod, k.pod.Status, final, false)
	k.done = true
}

// publish writes a status to the API server.
func (k *kubelet) publish(s corev1.PodStatus, couldRun bool) {
	k.statuses.SetPodStatus(logger, k.pod, s)
	now, _ := k.statuses.GetPodStatus(k.pod.UID)
	k.pod.Status = mergePodStatus(k.pod, k.pod.Status, now, couldRun)
}

func (k *kubelet) podStatus(t *testing.T) *kubecontainer.PodStatus {
	t.Helper()
	known, err := k.runtime.GetPod(t.Context(), k.pod.UID)
	if errors.Is(err, kubecontainer.ErrPodNotFound) {
		known, err = &kubecontainer.Pod{ID: k.pod.UID, Name: k.pod.Name, Namespace: k.pod.Namespace}, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := k.runtime.GetPodStatus(t.Context(), known)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// probe has all probes of running containers succeed.
func (k *kubelet) probe() {
	for id, c := range k.cri.Containers {
		if c.State != cri.ContainerState_CONTAINER_RUNNING {
			continue
		}
		for _, m := range k.probes {
			m.Set(kubecontainer.ContainerID{Type: "fakeRuntime", ID: id}, results.Success, k.pod)
			select {
			case <-m.Updates(): // this test does not read them
			default:
			}
		}
	}
}

// These are the checks of a pod's state that the kubelet's parts make.

func (k *kubelet) IsPodTerminationRequested(types.UID) bool       { return k.pod.DeletionTimestamp != nil }
func (k *kubelet) ShouldPodContentBeRemoved(types.UID) bool       { return false }
func (k *kubelet) ShouldPodRuntimeBeRemoved(types.UID) bool       { return false }
func (k *kubelet) PodCouldHaveRunningContainers(*corev1.Pod) bool { return false }

// probeManager is the real prober with the readiness of containers that a test has made unready.
type probeManager struct {
	prober.Manager
	kubelet *kubelet
}

func (p *probeManager) UpdatePodStatus(ctx context.Context, pod *corev1.Pod, s *corev1.PodStatus) {
	p.Manager.UpdatePodStatus(ctx, pod, s)
	unready := pod.Annotations["bowsprit.dev/simulate-unready"]
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			if list[i].State.Running != nil && (unready == "true" || unready == list[i].Name) {
				list[i].Ready = false
			}
		}
	}
}

// helper resolves the environment of containers with the kubelet's own code.
type helper struct {
	*containertest.FakeRuntimeHelper
	kubelet *kubelet
}

func (h *helper) GenerateRunContainerOptions(
	ctx context.Context, pod *corev1.Pod, c *corev1.Container, ip string, ips []string, _ kubecontainer.ImageVolumes,
) (*kubecontainer.RunContainerOptions, func(), error) {
	// The kubelet has a client only here, since a client brings host addresses into the status.
	setField(h.kubelet.Kubelet, "kubeClient", h.kubelet.client)
	defer setField(h.kubelet.Kubelet, "kubeClient", nil)
	if _, err := makeEnvironmentVariables(h.kubelet.Kubelet, ctx, pod, c, ip, ips, nil); err != nil {
		return nil, nil, err
	}
	return &kubecontainer.RunContainerOptions{}, nil, nil
}

// podManager knows one pod.
type podManager struct{ *kubelet }

func (p podManager) GetPodByUID(types.UID) (*corev1.Pod, bool)         { return p.pod, true }
func (p podManager) GetMirrorPodByPod(*corev1.Pod) (*corev1.Pod, bool) { return nil, false }
func (p podManager) TranslatePodUID(uid types.UID) kubetypes.ResolvedPodUID {
	return kubetypes.ResolvedPodUID(uid)
}
func (p podManager) GetUIDTranslations() (
	map[kubetypes.ResolvedPodUID]kubetypes.MirrorPodUID, map[kubetypes.MirrorPodUID]kubetypes.ResolvedPodUID,
) {
	return nil, nil
}

// pulls ignores the times of pulls, starts and statuses.
type pulls struct{}

func (pulls) RecordImageStartedPulling(types.UID)              {}
func (pulls) RecordImageFinishedPulling(types.UID)             {}
func (pulls) RecordInitContainerStarted(types.UID, time.Time)  {}
func (pulls) RecordInitContainerFinished(types.UID, time.Time) {}
func (pulls) RecordStatusUpdated(klog.Logger, *corev1.Pod)     {}
func (pulls) DeletePodStartupState(types.UID)                  {}

// runtimeService is a container runtime with programs that end by themselves.
type runtimeService struct {
	*critest.FakeRuntimeService
	runs runs
	late bool
}

// expire ends the containers that end by a time, and removes ends before the last one, as the kubelet's collector does.
func (r *runtimeService) expire(now time.Time) {
	dead := map[string]*critest.FakeContainer{}
	for id, c := range r.Containers {
		name := c.Metadata.Name
		how := r.runs[name]
		if c.State == cri.ContainerState_CONTAINER_RUNNING && how.after != 0 &&
			!now.Before(time.Unix(0, c.StartedAt).Add(how.after)) {
			end(c, how.code)
		}
		if c.State == cri.ContainerState_CONTAINER_EXITED {
			if before := dead[name]; before == nil || before.Metadata.Attempt < c.Metadata.Attempt {
				if before != nil {
					delete(r.Containers, before.Id)
				}
				dead[name] = c
			} else {
				delete(r.Containers, id)
			}
		}
	}
}

// CreateContainer also makes the log of the run: the kubelet counts restarts by it after it has removed containers.
func (r *runtimeService) CreateContainer(
	ctx context.Context, sandbox string, c *cri.ContainerConfig, s *cri.PodSandboxConfig,
) (string, error) {
	path := filepath.Join(s.LogDirectory, c.LogPath)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return "", err
	}
	return r.FakeRuntimeService.CreateContainer(ctx, sandbox, c, s)
}

// due returns the time until the next container ends by itself; 0 is never.
func (r *runtimeService) due(now time.Time) (next time.Duration) {
	for _, c := range r.Containers {
		if how := r.runs[c.Metadata.Name]; c.State == cri.ContainerState_CONTAINER_RUNNING && how.after > 0 {
			if left := time.Unix(0, c.StartedAt).Add(how.after).Sub(now); next == 0 || left < next {
				next = max(1, left)
			}
		}
	}
	return next
}

func end(c *critest.FakeContainer, code int32) {
	c.State, c.FinishedAt = cri.ContainerState_CONTAINER_EXITED, time.Now().UnixNano()
	c.ExitCode, c.Reason = code, "Completed"
	if code != 0 {
		c.Reason = "Error"
	}
}

// StopContainer ends a container: with 143 if it would have ended by itself.
func (r *runtimeService) StopContainer(ctx context.Context, id string, timeout int64) error {
	r.Lock()
	c := r.Containers[id]
	was := c != nil && c.State == cri.ContainerState_CONTAINER_RUNNING
	r.Unlock()
	if err := r.FakeRuntimeService.StopContainer(ctx, id, timeout); err != nil || !was {
		return err
	}
	r.Lock()
	defer r.Unlock()
	code := int32(0)
	if r.late || r.runs[c.Metadata.Name].after > 0 {
		code = 143
	}
	end(c, code)
	return nil
}

// changedSince reports whether any call after a number of calls changed a container.
func (r *runtimeService) changedSince(calls int) bool {
	for _, call := range r.Called[calls:] {
		switch call {
		case "RunPodSandbox", "StopPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer":
			return true
		}
	}
	return false
}
