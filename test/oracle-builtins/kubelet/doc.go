// Package kubelet has only tests: they compare the simulated kubelets of internal/workload/pod with the code of a
// kubelet. The kubelet's parts that decide about containers and write a pod's status (pkg/kubelet/kuberuntime, status,
// prober and the methods of pkg/kubelet.Kubelet for the status) are the real ones. They run on a fake of a container
// runtime, in a bubble of testing/synctest.
//
// Not compared are parts that need a machine: cgroups, volumes, the pod workers' queue and the timing of probes.
package kubelet
