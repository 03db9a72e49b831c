package workloads

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/hostpath"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// replaced lists the simulated controllers that Kubernetes' own replace.
var replaced = []string{
	"deployment-controller", "replicaset-controller", "replicationcontroller-controller", "statefulset-controller",
	"daemonset-controller", "job-controller", "cronjob-controller", "persistentvolume-binder-controller",
	"disruption-controller", "horizontal-pod-autoscaler-controller", "endpointslice-controller",
	"endpoints-controller", "endpointslice-mirroring-controller", "ttl-after-finished-controller",
	"persistentvolumeclaim-protection-controller",
}

// startServer starts a server with simulated nodes, without some of its controllers.
func startServer(t *testing.T, nodes string, without ...string) *rest.Config {
	t.Helper()
	return startWithGates(t, nodes, nil, without...)
}

// startWithGates starts a server with simulated nodes and feature gates, without some of its controllers.
func startWithGates(t *testing.T, nodes string, gates map[string]bool, without ...string) *rest.Config {
	t.Helper()
	large := testserver.WithWorkloads(append(strings.Fields(nodes), "pods=2000", "cpu=1000", "memory=1000Gi")...)
	server := testserver.Start(t, large, func(c *bowsprit.Config) {
		c.Controllers.Enabled = []string{"*"}
		c.API.Features = gates
		for _, name := range without {
			c.Controllers.Enabled = append(c.Controllers.Enabled, "-"+name)
		}
		c.Admission.Disabled = append(c.Admission.Disabled, "ServiceAccount") // its accounts appear late
	})
	settings := server.RESTConfig()
	settings.QPS, settings.WarningHandler = -1, rest.NoWarnings{}
	return settings
}

// replacedOnNodes lists the controllers for nodes that Kubernetes' own replace in stories about nodes.
var replacedOnNodes = []string{"node-lifecycle-controller", "taint-eviction-controller"}

// startNodeControllers runs kube-controller-manager's controllers of nodes against a server until the test ends.
func startNodeControllers(t *testing.T, settings *rest.Config) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(settings)
	ctx := klog.NewContext(t.Context(), klog.Logger{})
	f := informers.NewSharedInformerFactory(client, 0)
	core, leases := f.Core().V1(), f.Coordination().V1().Leases()
	life, err := nodelifecycle.NewNodeLifecycleController(ctx, leases, core.Pods(), core.Nodes(),
		f.Apps().V1().DaemonSets(), client, 100*time.Millisecond, time.Minute, 50*time.Second, 100, 100, 50, 0.55)
	if err != nil {
		t.Fatal(err)
	}
	evictions, err := tainteviction.New(ctx, client, core.Pods(), core.Nodes(), "taint-eviction-controller")
	if err != nil {
		t.Fatal(err)
	}
	f.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	go life.Run(ctx)
	go evictions.Run(ctx)
}

// startControllers runs kube-controller-manager's controllers against a server until the test ends.
func startControllers(t *testing.T, settings *rest.Config) {
	t.Helper()
	client, err := kubernetes.NewForConfig(settings)
	if err != nil {
		t.Fatal(err)
	}
	ctx := klog.NewContext(t.Context(), klog.Logger{})
	f := informers.NewSharedInformerFactory(client, 0)
	core, apps, batch := f.Core().V1(), f.Apps().V1(), f.Batch().V1()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(),
		client)
	must(err)
	sets := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client, replicaset.BurstReplicas)
	controllers := replication.NewReplicationManager(ctx, core.Pods(), core.ReplicationControllers(), client,
		replication.BurstReplicas)
	stateful := statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(),
		core.PersistentVolumeClaims(), apps.ControllerRevisions(), client)
	daemons, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(),
		core.Nodes(), client, flowcontrol.NewBackOff(time.Second, 15*time.Minute))
	must(err)
	job.SyncJobBatchPeriod = 50 * time.Millisecond // the default is a second; it only batches changes
	jobs, err := job.NewController(ctx, client, core.Pods(), batch.Jobs(), nil, nil)
	must(err)
	cron, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), client)
	must(err)
	volumes, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
		KubeClient: client, SyncPeriod: 15 * time.Second, EnableDynamicProvisioning: true,
		VolumePlugins:  hostpath.ProbeVolumePlugins(volume.VolumeConfig{}),
		VolumeInformer: core.PersistentVolumes(), ClaimInformer: core.PersistentVolumeClaims(),
		ClassInformer: f.Storage().V1().StorageClasses(), PodInformer: core.Pods(), NodeInformer: core.Nodes(),
	})
	must(err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	kindOf := scale.NewDiscoveryScaleKindResolver(client.Discovery())
	scales, err := scale.NewForConfig(settings, mapper, dynamic.LegacyAPIPathResolverFunc, kindOf)
	must(err)
	budgets := disruption.NewDisruptionController(ctx, core.Pods(), f.Policy().V1().PodDisruptionBudgets(),
		core.ReplicationControllers(), apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), client, mapper,
		scales, client.Discovery())
	usage, err := resourceclient.NewForConfig(settings)
	must(err)
	served := custom_metrics.NewAvailableAPIsGetter(client.Discovery())
	custom := custom_metrics.NewForConfig(settings, mapper, served)
	external, err := external_metrics.NewForConfig(settings)
	must(err)
	scalers := podautoscaler.NewHorizontalController(ctx, client.CoreV1(), scales, client.AutoscalingV2(), mapper,
		metrics.NewRESTMetricsClient(usage, custom, external), f.Autoscaling().V2().HorizontalPodAutoscalers(),
		core.Pods(), time.Second, 5*time.Minute, 0.1, 5*time.Minute, 30*time.Second)
	slices := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(),
		f.Discovery().V1().EndpointSlices(), 100, client, 0)
	endpoints := endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(), client, 0)
	mirrors := endpointslicemirroring.NewController(ctx, core.Endpoints(),
		f.Discovery().V1().EndpointSlices(), core.Services(), 1000, client, 0)
	expiry := ttlafterfinished.New(ctx, batch.Jobs(), client)
	protection, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), core.PersistentVolumeClaims(),
		core.Pods(), client)
	must(err)
	f.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	const workers = 5
	go deployments.Run(ctx, workers)
	go sets.Run(ctx, workers)
	go controllers.Run(ctx, workers)
	go stateful.Run(ctx, workers)
	go daemons.Run(ctx, workers)
	go jobs.Run(ctx, workers)
	go cron.Run(ctx, workers)
	go volumes.Run(ctx)
	go budgets.Run(ctx, 1)
	go scalers.Run(ctx, workers)
	go slices.Run(ctx, workers)
	go endpoints.Run(ctx, workers)
	go mirrors.Run(ctx, workers)
	go expiry.Run(ctx, workers)
	go protection.Run(ctx, workers)
}

// makeClasses makes the StorageClasses of stories, besides the default one.
func makeClasses(t *testing.T, servers ...*rest.Config) {
	t.Helper()
	later, grows, keep := storagev1.VolumeBindingWaitForFirstConsumer, true, corev1.PersistentVolumeReclaimRetain
	for _, settings := range servers {
		classes := kubernetes.NewForConfigOrDie(settings).StorageV1().StorageClasses()
		for name, class := range map[string]storagev1.StorageClass{
			"wait":  {Provisioner: "simulated.bowsprit.dev", VolumeBindingMode: &later},
			"other": {Provisioner: "example.com/other"},
			"keep":  {Provisioner: "simulated.bowsprit.dev", ReclaimPolicy: &keep, MountOptions: []string{"ro"}},
			"none":  {Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &later},
			"grow":  {Provisioner: "simulated.bowsprit.dev", AllowVolumeExpansion: &grows},
		} {
			class.Name = name
			if _, err := classes.Create(t.Context(), &class, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
