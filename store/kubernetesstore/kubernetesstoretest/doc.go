// Package kubernetesstoretest tests store/kubernetesstore on a real API server, kube-apiserver over
// etcd. It is a module of its own, so that programs with the store do not fetch what tests need.
package kubernetesstoretest
