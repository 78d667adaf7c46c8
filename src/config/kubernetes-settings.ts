/** The settings of a server that runs stages in Kubernetes. */
import { oneOf, text } from '../kernel/check.ts'
import { serverUrl } from '../kernel/fields.ts'
import { images, names } from './checks.ts'

export const kubernetesSettings = {
  kubernetes: {
    check: oneOf([true, false]),
    kind: 'switch',
    env: 'PAWL_KUBERNETES',
    default: false,
    says: 'start the workers of stages with a Kubernetes runner as Kubernetes Jobs',
  },
  k8sNamespace: {
    check: text(63),
    kind: 'text',
    value: 'NAME',
    env: 'PAWL_K8S_NAMESPACE',
    says: 'where stages run in Kubernetes; default: the namespace of the server, or the kubeconfig’s',
  },
  k8sUrl: {
    check: serverUrl,
    kind: 'text',
    value: 'URL',
    env: 'PAWL_K8S_URL',
    says: 'where workers in Kubernetes find the server; default: the Service of deploy/',
  },
  k8sImage: {
    check: text(500),
    kind: 'text',
    value: 'IMAGE',
    env: 'PAWL_K8S_IMAGE',
    says: 'the image of Pawl that they are made from; none: every stage’s image has its own pawl',
  },
  k8sKeySecret: {
    check: text(253),
    kind: 'text',
    value: 'NAME',
    env: 'PAWL_K8S_KEY_SECRET',
    says: 'the Secret whose "key" they show to the server; none: it asks for none',
  },
  k8sImages: {
    check: images,
    kind: 'list',
    value: 'IMAGE',
    env: 'PAWL_K8S_IMAGES',
    says: 'an image that stages may run in, or a pattern such as python:* or registry.example.com/team/*, may be repeated; default: that of --k8s-image alone',
  },
  k8sNamespaces: {
    check: names,
    kind: 'list',
    value: 'NAME',
    env: 'PAWL_K8S_NAMESPACES',
    says: 'a namespace that stages may name, may be repeated; default: that of --k8s-namespace alone',
  },
  k8sSecrets: {
    check: names,
    kind: 'list',
    value: 'NAME',
    env: 'PAWL_K8S_SECRETS',
    says: 'a Secret of Kubernetes that stages may use, may be repeated; default: none',
  },
  k8sServiceAccounts: {
    check: names,
    kind: 'list',
    value: 'NAME',
    env: 'PAWL_K8S_SERVICE_ACCOUNTS',
    says: 'a service account that stages may run as, may be repeated; default: none',
  },
} as const
