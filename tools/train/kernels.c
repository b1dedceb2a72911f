/* Fused element-wise kernels for training on one CPU core: PyTorch builds without a vector exp are slow at these.
 * Plain C; the compiler vectorises it (-O3 -march=native -ffast-math). All arrays are float32 and contiguous.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Weighted cross-entropy over rows of logits; replaces logits by d(loss)/d(logits). loss_row[i] is unweighted. */
void xent(float *logits, const int64_t *target, const float *weight, float *loss_row, int64_t n, int64_t v)
{
    for (int64_t i = 0; i < n; i++) {
        float *z = logits + i * v;
        float max = z[0], sum = 0;
        for (int64_t j = 1; j < v; j++)
            max = z[j] > max ? z[j] : max;
        float zt = z[target[i]];
        for (int64_t j = 0; j < v; j++) {
            z[j] = expf(z[j] - max);
            sum += z[j];
        }
        loss_row[i] = logf(sum) + max - zt;
        float scale = weight[i] / sum;
        for (int64_t j = 0; j < v; j++)
            z[j] *= scale;
        z[target[i]] -= weight[i];
    }
}

/* Softmax in place of scores[g][t][t] (g = batch*heads): row i sees columns start[g / heads][i] .. i. */
void attn_softmax(float *s, const int32_t *start, int64_t g, int64_t heads, int64_t t, float scale)
{
    for (int64_t a = 0; a < g; a++)
        for (int64_t i = 0; i < t; i++) {
            float *z = s + (a * t + i) * t;
            int64_t lo = start[a / heads * t + i], hi = i + 1;
            float max = -INFINITY, sum = 0;
            for (int64_t j = lo; j < hi; j++)
                max = z[j] > max ? z[j] : max;
            for (int64_t j = lo; j < hi; j++) {
                z[j] = expf((z[j] - max) * scale);
                sum += z[j];
            }
            sum = 1 / sum;
            for (int64_t j = lo; j < hi; j++)
                z[j] *= sum;
            memset(z, 0, (size_t)lo * sizeof(*z));
            memset(z + hi, 0, (size_t)(t - hi) * sizeof(*z));
        }
}

/* d(scores) in place of d(probabilities). */
void attn_softmax_back(float *d, const float *p, const int32_t *start, int64_t g, int64_t heads, int64_t t, float scale)
{
    for (int64_t a = 0; a < g; a++)
        for (int64_t i = 0; i < t; i++) {
            float *dz = d + (a * t + i) * t;
            const float *pz = p + (a * t + i) * t;
            int64_t lo = start[a / heads * t + i], hi = i + 1;
            float dot = 0;
            for (int64_t j = lo; j < hi; j++)
                dot += dz[j] * pz[j];
            memset(dz, 0, (size_t)lo * sizeof(*dz));
            for (int64_t j = lo; j < hi; j++)
                dz[j] = (dz[j] - dot) * pz[j] * scale;
            memset(dz + hi, 0, (size_t)(t - hi) * sizeof(*dz));
        }
}

void swiglu(const float *gate, const float *up, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = gate[i] / (1 + expf(-gate[i])) * up[i];
}

void swiglu_back(const float *gate, const float *up, const float *dout, float *dgate, float *dup, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float s = 1 / (1 + expf(-gate[i]));
        dup[i] = dout[i] * gate[i] * s;
        dgate[i] = dout[i] * up[i] * s * (1 + gate[i] * (1 - s));
    }
}

void rmsnorm(const float *x, const float *w, float *out, float *inv, int64_t n, int64_t d, float eps)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int64_t j = 0; j < d; j++)
            sum += x[i * d + j] * x[i * d + j];
        float r = 1 / sqrtf(sum / (float)d + eps);
        inv[i] = r;
        for (int64_t j = 0; j < d; j++)
            out[i * d + j] = x[i * d + j] * r * w[j];
    }
}

void rmsnorm_back(const float *x, const float *w, const float *inv, const float *dout, float *dx, float *dw, int64_t n,
                  int64_t d)
{
    for (int64_t i = 0; i < n; i++) {
        float r = inv[i], dot = 0;
        for (int64_t j = 0; j < d; j++)
            dot += dout[i * d + j] * w[j] * x[i * d + j];
        dot *= r * r * r / (float)d;
        for (int64_t j = 0; j < d; j++) {
            dx[i * d + j] = dout[i * d + j] * w[j] * r - x[i * d + j] * dot;
            dw[j] += dout[i * d + j] * x[i * d + j] * r;
        }
    }
}

/* Rotates interleaved pairs (x[2k], x[2k+1]) of [rows][t][heads][d] in place; sign -1 is the inverse. */
void rope(float *x, const float *cos_t, const float *sin_t, int64_t rows, int64_t t, int64_t heads, int64_t d, float sign)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t p = 0; p < t; p++)
            for (int64_t h = 0; h < heads; h++) {
                float *z = x + ((r * t + p) * heads + h) * d;
                for (int64_t k = 0; k < d / 2; k++) {
                    float c = cos_t[p * (d / 2) + k], s = sign * sin_t[p * (d / 2) + k];
                    float a = z[2 * k], b = z[2 * k + 1];
                    z[2 * k] = a * c - b * s;
                    z[2 * k + 1] = a * s + b * c;
                }
            }
}

/* One AdamW step over n values; bias corrections are folded into lr and eps by the caller. */
void adamw(float *w, const float *g, float *m, float *v, int64_t n, float lr, float b1, float b2, float eps, float decay)
{
    for (int64_t i = 0; i < n; i++) {
        m[i] = b1 * m[i] + (1 - b1) * g[i];
        v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
        w[i] = w[i] * decay - lr * m[i] / (sqrtf(v[i]) + eps);
    }
}
