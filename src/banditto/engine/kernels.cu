// What a GPU does in one pass: coins, rewards, and reductions over the arms of a replicate.
//
// Coins are Philox4x64-10, word for word those of banditto/chance/coins.py. Binomial totals are those of banditto/chance/binomials.py,
// at the same places of the same streams, step by step, so that both can be compared draw by draw; only logarithms may
// round differently. Compile without fused multiply-add.

typedef unsigned long long word_t;
typedef long long int_t;

// ---- coins -----------------------------------------------------------------------------------------------------

// Replicates start to start + size - 1; one thread makes the four words of one step.
extern "C" __global__ void coins(word_t low, word_t high, word_t start, word_t size, double *out) {
    const word_t step = start / 4 + (word_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (step * 4 >= start + size) return;
    word_t c0 = step + 1, c1 = 0, c2 = 0, c3 = 0;
    for (int round = 0; round < 10; round++) {
        const word_t first = __umul64hi(0xD2E7470EE14C6C93ull, c0), second = __umul64hi(0xCA5A826395121157ull, c2);
        const word_t third = 0xD2E7470EE14C6C93ull * c0, fourth = 0xCA5A826395121157ull * c2;
        c0 = second ^ c1 ^ low;
        c1 = fourth;
        c2 = first ^ c3 ^ high;
        c3 = third;
        low += 0x9E3779B97F4A7C15ull;
        high += 0xBB67AE8584CAA73Bull;
    }
    const word_t words[4] = {c0, c1, c2, c3};
    for (int lane = 0; lane < 4; lane++) {
        const word_t replicate = step * 4 + lane;
        if (replicate >= start && replicate < start + size) {
            out[replicate - start] = (double)(words[lane] >> 11) * 1.1102230246251565e-16;
        }
    }
}

// ---- rewards ---------------------------------------------------------------------------------------------------

__device__ __forceinline__ double uniform(word_t key, word_t second, word_t index) {
    word_t bits = key + index * 0x9E3779B97F4A7C15ull;
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull) ^ second;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
    return (double)((bits ^ (bits >> 31)) >> 11) * 1.1102230246251565e-16;
}

// The error of Stirling's formula; below 16 by log x!, from 16 on by its series.
__device__ double stirling(double x) {
    if (x < 16.0) return lgamma(x + 1.0) - (x + 0.5) * log(x) + x - 0.9189385332046727418;
    const double y = 1.0 / x, z = y * y;
    return y * (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0))));
}

__device__ __forceinline__ double deviance(double x, double mean) {
    const double v = (x - mean) / (x + mean), z = v * v;
    if (z > 0.0025) return x * log(x / mean) + mean - x;
    const double series =
        1.0 / 3.0 + z * (1.0 / 5.0 + z * (1.0 / 7.0 + z * (1.0 / 9.0 + z * (1.0 / 11.0 + z * (1.0 / 13.0)))));
    return v * ((x - mean) + 2.0 * x * z * series);
}

__device__ double log_probability(double k, double n, double p) {
    if (k == 0.0) return n * log1p(-p);
    if (k == n) return n * log(p);
    const double rest = n - k;
    const double close =
        stirling(n) - stirling(k) - stirling(rest) - deviance(k, n * p) - deviance(rest, n * (1.0 - p));
    return close + 0.5 * log(n / (k * rest)) - 0.9189385332046727418;
}

struct Law {  // of draws with one count and probability, which is at most 1/2
    double n, p, twice_a, b, c, v_r, alpha, mode, variance, at_mode, nothing, odds;
    bool few;

    __device__ void prepare(double count, double probability) {
        n = count;
        p = probability;
        few = n * p < 10.0;
        if (few) {
            nothing = exp(n * log1p(-p));
            odds = p / (1.0 - p);
            return;
        }
        variance = n * p * (1.0 - p);
        const double s = sqrt(variance);
        b = 1.15 + 2.53 * s;
        const double a = -0.0873 + 0.0248 * b + 0.01 * p;
        twice_a = 2.0 * a;
        c = n * p + 0.5;
        v_r = 0.92 - 4.2 / b;
        alpha = (2.83 + 5.1 / b) * s;
        mode = floor((n + 1.0) * p);
        at_mode = log_probability(mode, n, p);
    }

    __device__ double inverted(double u) const {
        double k = 0.0, probability = nothing;
        while (u > probability && k < n && k < 200.0) {
            u -= probability;
            k += 1.0;
            probability *= odds * (n - k + 1.0) / k;
        }
        return k;
    }

    // One attempt; negative when it is rejected.
    __device__ double attempt(word_t key, word_t second, word_t index) const {
        const double u = uniform(key, second, index) - 0.5, us = 0.5 - fabs(u);
        double v = uniform(key, second, index + 1);
        const double k = floor((twice_a / us + b) * u + c);
        if (us >= 0.07 && v <= v_r) return k;
        if (!(k >= 0.0 && k <= n)) return -1.0;
        v = log(v * alpha / (0.5 * twice_a / (us * us) + b));
        const double distance = fabs(k - mode);
        if (distance > 32.0 && distance < 0.5 * variance - 1.0) {
            const double share = distance / variance;
            const double slack = share * ((distance * (distance / 3.0 + 0.625) + 1.0 / 6.0) / variance + 0.5);
            const double middle = -0.5 * distance * share;
            if (v < middle - slack) return k;
            if (v > middle + slack) return -1.0;
        }
        return v <= log_probability(k, n, p) - at_mode ? k : -1.0;
    }
};

// One draw for each (replicate, arm); `means` has `arms` entries or, with `each`, one for every element. `numbers` are the
// replicates' places among the `whole` that there were at first; null: all are there. A thread goes on to its next element
// as soon as an attempt is accepted: no thread waits for its neighbours' rejections.
extern "C" __global__ void binomial_totals(const int_t *pulls, int_t row_step, int_t arm_step, const double *means,
                                           bool each, int_t rows, int_t arms, word_t key, word_t second, word_t first,
                                           const int_t *numbers, int_t whole, double *out) {
    const int_t size = rows * arms, stride = (int_t)gridDim.x * blockDim.x;
    int_t element = (int_t)blockIdx.x * blockDim.x + threadIdx.x;
    int_t arm = element / rows, row = element - arm * rows;
    Law law;
    law.n = -1.0;
    law.p = -1.0;
    bool open = false, flipped = false;
    word_t index = 0;
    while (element < size) {
        double k = 0.0;
        if (!open) {
            const double count = (double)pulls[row * row_step + arm * arm_step];
            const double mean = means[each ? element : arm];
            flipped = mean > 0.5;
            const double p = flipped ? 1.0 - mean : mean;
            open = count > 0.0 && p > 0.0;
            if (count != law.n || p != law.p) law.prepare(count, p);
            index = first + 2 * (word_t)(arm * whole + (numbers ? numbers[row] : row));
        }
        if (open) {
            k = law.few ? law.inverted(uniform(key, second, index)) : law.attempt(key, second, index);
            index += 2 * (word_t)(whole * arms);
        }
        if (k >= 0.0) {
            out[element] = flipped ? law.n - k : k;
            open = false;
            element += stride;
            row += stride;
            while (row >= rows) {
                row -= rows;
                arm++;
            }
        }
    }
}

extern "C" __global__ void normal_totals(const int_t *pulls, int_t row_step, int_t arm_step, const double *means,
                                         double sigma, int_t rows, int_t arms, word_t key, word_t second, word_t first,
                                         const int_t *numbers, int_t whole, double *out) {
    const int_t size = rows * arms, stride = (int_t)gridDim.x * blockDim.x;
    for (int_t element = (int_t)blockIdx.x * blockDim.x + threadIdx.x; element < size; element += stride) {
        const int_t arm = element / rows, row = element - arm * rows;
        const double n = (double)pulls[row * row_step + arm * arm_step];
        const word_t index = first + 2 * (word_t)(arm * whole + (numbers ? numbers[row] : row));
        const double radius = sqrt(-2.0 * log(1.0 - uniform(key, second, index)));
        const double angle = 2.0 * uniform(key, second, index + 1);
        out[element] = n * means[arm] + sigma * sqrt(n) * (radius * cospi(angle));
    }
}

// ---- reductions over the arms of each replicate ------------------------------------------------------------------

#define ROWS(NAME, IN, OUT, START, STEP)                                                                      \
    extern "C" __global__ void NAME(const IN *values, int_t row_step, int_t arm_step, int_t rows, int_t arms, \
                                    OUT *out) {                                                               \
        const int_t row = (int_t)blockIdx.x * blockDim.x + threadIdx.x;                                       \
        if (row >= rows) return;                                                                              \
        const IN *value = values + row * row_step;                                                            \
        OUT found = START;                                                                                    \
        for (int_t arm = 0; arm < arms; arm++, value += arm_step) STEP;                                       \
        out[row] = found;                                                                                     \
    }

ROWS(max_float64, double, double, *value, found = *value > found ? *value : found)
ROWS(min_float64, double, double, *value, found = *value < found ? *value : found)
ROWS(sum_float64, double, double, 0.0, found += *value)
ROWS(max_int64, int_t, int_t, *value, found = *value > found ? *value : found)
ROWS(min_int64, int_t, int_t, *value, found = *value < found ? *value : found)
ROWS(sum_int64, int_t, int_t, 0, found += *value)
ROWS(any_bool, bool, bool, false, found |= *value)
ROWS(all_bool, bool, bool, true, found &= *value)
ROWS(count_bool, bool, int_t, 0, found += *value)

// Which entries lie at most a cut below the largest of their row; `found` is in replicate-major order, as CuPy's are.
extern "C" __global__ void within(const double *values, int_t row_step, int_t arm_step, const double *cuts,
                                  int_t cut_step, int_t rows, int_t arms, bool *found) {
    const int_t row = (int_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const double *value = values + row * row_step;
    const double cut = cuts[row * cut_step];
    double leader = *value;
    for (int_t arm = 1; arm < arms; arm++) {
        const double other = value[arm * arm_step];
        leader = other > leader ? other : leader;
    }
    for (int_t arm = 0; arm < arms; arm++) found[row * arms + arm] = leader - value[arm * arm_step] <= cut;
}
